// Folds two boxes into one number, which depends on the order of everything, and spreads it over a third.
#include "pypto/kernel.h"

static uint64_t fold(uint64_t hash, const int64_t* box, int64_t rows, int64_t columns, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      hash = (hash ^ static_cast<uint64_t>(box[row * stride + column])) * 0x100000001b3u;
  return hash;
}

void kernel_entry(int64_t* args) {
  const pypto::Args a{args};
  const int64_t stride = a.value<int64_t>(9), operation = a.value<int64_t>(10);
  // Some tasks take much longer than others, so that a missing dependency shows.
  for (volatile int64_t spin = (operation / 2) % 8 * 20000; spin > 0;) spin = spin - 1;
  uint64_t hash = fold(static_cast<uint64_t>(operation), a.pointer<int64_t>(0), args[3], args[4], stride);
  hash = fold(hash, a.pointer<int64_t>(1), args[5], args[6], stride);
  int64_t* out = a.pointer<int64_t>(2);
  for (int64_t row = 0; row < args[7]; ++row)
    for (int64_t column = 0; column < args[8]; ++column) {
      int64_t& cell = out[row * stride + column];
      const uint64_t before = operation % 2 != 0 ? static_cast<uint64_t>(cell) : 0;
      cell = static_cast<int64_t>((hash + before) * 31 + static_cast<uint64_t>(row * 7 + column));
    }
}
