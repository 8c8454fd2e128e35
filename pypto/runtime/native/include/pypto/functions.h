// Functions of floating-point run-time numbers, for generated code: computed in double, so that they round once.
#pragma once

#include <cmath>

namespace pypto::functions {

inline float sqrt(float x) { return std::sqrt(x); }
inline float exp(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }
inline float log(float x) { return static_cast<float>(std::log(static_cast<double>(x))); }
inline float sin(float x) { return static_cast<float>(std::sin(static_cast<double>(x))); }
inline float cos(float x) { return static_cast<float>(std::cos(static_cast<double>(x))); }

}  // namespace pypto::functions
