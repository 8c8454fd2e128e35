#include "pypto/kernel.h"

void kernel_entry(int64_t* args) {
  const pypto::Args a{args};
  int64_t* out = a.pointer<int64_t>(0);
  for (int i = 0; i < 9; ++i) out[i] = a.value<int64_t>(i + 1);
  out[9] = static_cast<int64_t>(a.value<float>(10) * 1024);
  out[10] = static_cast<int64_t>(a.value<float>(11) * 1024);
  out[11] = static_cast<int64_t>(a.value<double>(12) * 1024);
}
