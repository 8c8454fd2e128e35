// Included in front of the PTO-ISA headers when a cube kernel is built for the simulator: their tile class names the
// control register of the matrix unit, which the simulator does not declare. Nothing in the simulator reads it.
#pragma once
#include <cstdint>

inline std::int64_t get_ctrl() { return 0; }
inline void set_ctrl(std::int64_t) {}
inline std::int64_t sbitset0(std::int64_t value, int bit) { return value & ~(std::int64_t{1} << bit); }
inline std::int64_t sbitset1(std::int64_t value, int bit) { return value | (std::int64_t{1} << bit); }
