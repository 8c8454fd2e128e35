// out = x + n * step

#include <step.h>

extern "C" void kernel_entry(__gm__ int64_t* args) {
  const auto* x = reinterpret_cast<__gm__ float*>(args[0]);
  auto* out = reinterpret_cast<__gm__ float*>(args[2]);
  for (int i = 0; i < 16 * 64; ++i) out[i] = x[i] + step() * args[1];
}
