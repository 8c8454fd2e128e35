// Scalar arithmetic with Python's meaning, for generated code.
#pragma once

#include <cstdint>
#include <limits>

namespace pypto {

// Rounds towards minus infinity. Generated code computes some quotients that are not used when the divisor is 0.
inline int64_t floordiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

// Has the sign of the divisor.
inline int64_t mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// Counts outside of 0 to 63 give what shifting bit by bit gives; negative ones shift nothing.
inline int64_t shift_left(int64_t a, int64_t count) {
  if (count <= 0) return a;
  return count > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << count);
}
inline int64_t shift_right(int64_t a, int64_t count) { return count <= 0 ? a : a >> (count > 63 ? 63 : count); }

inline int64_t minimum(int64_t a, int64_t b) { return b < a ? b : a; }
inline int64_t maximum(int64_t a, int64_t b) { return a < b ? b : a; }
inline float minimum(float a, float b) { return b < a ? b : a; }
inline float maximum(float a, float b) { return a < b ? b : a; }

// Whole numbers near a number, which kernels round without a library of mathematics. From 2^23 on every float is one.
inline float rounded_to_zero(float x) {
  return x > -8388608.0f && x < 8388608.0f ? static_cast<float>(static_cast<int32_t>(x)) : x;
}
inline float rounded_down(float x) {
  const float whole = rounded_to_zero(x);
  return whole > x ? whole - 1.0f : whole;
}
inline float rounded_up(float x) {
  const float whole = rounded_to_zero(x);
  return whole < x ? whole + 1.0f : whole;
}
// A half goes away from zero.
inline float rounded(float x) {
  const float whole = rounded_to_zero(x), rest = x - whole;
  return rest >= 0.5f ? whole + 1.0f : rest <= -0.5f ? whole - 1.0f : whole;
}
inline float rounded_to_even(float x) {
  const float down = rounded_down(x), rest = x - down;
  if (rest == 0.5f) return 2.0f * rounded_down(0.5f * down) == down ? down : down + 1.0f;
  return rest > 0.5f ? down + 1.0f : down;
}

// A whole number in the type that has the range of T: the nearest one there is, and 0 for what is no number.
template <class T>
inline int64_t saturated(float x) {
  if (x != x) return 0;
  if (x <= static_cast<float>(std::numeric_limits<T>::min())) return static_cast<int64_t>(std::numeric_limits<T>::min());
  if (x >= static_cast<float>(std::numeric_limits<T>::max())) return static_cast<int64_t>(std::numeric_limits<T>::max());
  return static_cast<int64_t>(static_cast<T>(x));
}

// The nearest 32-bit number: an offset that does not fit stays out of bounds.
inline int32_t narrow(int64_t value) {
  return static_cast<int32_t>(minimum(maximum(value, INT32_MIN), INT32_MAX));
}

}  // namespace pypto
