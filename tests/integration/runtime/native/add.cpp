#include "pypto/kernel.h"

void kernel_entry(int64_t* args) {
  const pypto::Args a{args};
  const float* from = a.pointer<float>(0);
  float* to = a.pointer<float>(1);
  for (int64_t row = 0; row < a.value<int64_t>(2); ++row)
    for (int64_t column = 0; column < a.value<int64_t>(3); ++column)
      to[row * a.value<int64_t>(5) + column] = from[row * a.value<int64_t>(4) + column] + a.value<float>(6);
}
