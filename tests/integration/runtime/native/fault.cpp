// Everything a kernel can do wrong. ops: 0 tile.load, 1 tile.add, 2 tile.store.
#undef NDEBUG
#include <cassert>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "pypto/kernel.h"

__attribute__((noinline)) static int64_t recurse(volatile char* outer, int64_t depth) {
  volatile char frame[4096];
  frame[0] = outer != nullptr ? outer[0] : 1;
  return depth == 0 ? frame[0] : recurse(frame, depth - 1) + frame[0];
}

static const float* plain(volatile float* tensor) { return const_cast<const float*>(tensor); }

void kernel_entry(int64_t* args) {
  const pypto::Args a{args};
  volatile float* in = a.pointer<float>(0);
  volatile float* state = a.pointer<float>(1);
  volatile float* workspace = a.pointer<float>(2);
  const int64_t count = a.value<int64_t>(4);
  PYPTO_OP(0);
  if (a.value<float>(5) == 2.5f) state[0] = in[0];
  PYPTO_OP(1);
  volatile int64_t zero = 0;
  switch (a.value<int64_t>(3)) {
    case 0: break;
    case 1: throw std::runtime_error("kernel threw");
    case 2: PYPTO_OP(-1); PYPTO_REQUIRE(false, "length above 128");  // of no operation: the task is named
    case 3: throw 5;
    case 10: assert(count < 0 && "tile too large"); break;
    case 11: *reinterpret_cast<volatile float*>(zero) = 1; break;
    case 12: PYPTO_OP(2); state[count] = 1; break;             // within the alignment's slack
    case 13: PYPTO_OP(2); state[count + 1024] = 1; break;      // into the guard
    case 14: PYPTO_OP(2); state[-1] = 1; break;
    case 15: PYPTO_OP(2); state[-2048] = 1; break;
    case 16: PYPTO_OP(2); in[1] = 1; break;
    case 17: PYPTO_OP(2); workspace[15 + 1024] = 1; break;
    case 18: state[0] = static_cast<float>(count / zero); break;
    case 19: state[0] = static_cast<float>(recurse(nullptr, int64_t{1} << 40)); break;
    case 20: std::abort();
    case 21: std::_Exit(3);
    case 22: raise(SIGKILL); break;
    case 23: workspace[15] = 1; break;
    case 30: PYPTO_OP(2); pypto::bounds::require_inside(plain(state) + count, 4, true); break;
    case 31: PYPTO_OP(2); pypto::bounds::require_inside(plain(state) + count - 2, 12, false); break;
    case 32: PYPTO_OP(2); pypto::bounds::require_inside(plain(in), 4, true); break;
    case 33: PYPTO_OP(2); pypto::bounds::require_inside(reinterpret_cast<float*>(16), 4, false); break;
    case 24: PYPTO_OP(77); std::abort();
  }
}
