// What the wrapper around a compute kernel includes: arguments, notes about the running operation, checks.
//
//   extern "C" void kernel_entry(__gm__ int64_t* args) {
//     pypto::Args a{args};
//     PYPTO_REQUIRE(a.value<int64_t>(2) <= 128, "length above 128");
//     qk(a.pointer<float>(0), a.pointer<float>(1), a.value<int32_t>(2));
//   }
#pragma once

#include <cstdint>

#include "pypto/abi.h"

// Marks memory outside of the chip. Only the device's compiler knows it, and the simulator's headers define it as nothing.
#if !defined(__CCE_AICORE__) && !defined(__gm__)
#define __gm__
#endif

namespace pypto {

// The 64-bit argument slots of one task.
struct Args {
  __gm__ int64_t* slots;

  // A tensor argument: its first element.
  template <class T>
  __gm__ T* pointer(int index) const {
    return reinterpret_cast<__gm__ T*>(slots[index]);
  }

  // A number: integers by value, `float` from the low half, `double` from the whole slot.
  template <class T>
  T value(int index) const {
    return static_cast<T>(slots[index]);
  }
};

template <>
inline float Args::value<float>(int index) const {
  return __builtin_bit_cast(float, static_cast<uint32_t>(slots[index]));
}

template <>
inline double Args::value<double>(int index) const {
  return __builtin_bit_cast(double, slots[index]);
}

}  // namespace pypto

#if defined(__CCE_AICORE__)

#define PYPTO_OP(n) ((void)0)
#define PYPTO_REQUIRE(condition, message) ((void)0)

#else

#include "pypto/bounds.h"
#include "pypto/memory_model.h"

namespace pypto::note {
namespace {
// One pair per shared object and thread: every kernel object is one translation unit.
thread_local int32_t op = -1;
thread_local const char* error = nullptr;
}  // namespace
}  // namespace pypto::note

PYPTO_EXPORT void kernel_entry(int64_t* args);

// Definitions, not inline ones: the host looks them up.
PYPTO_EXPORT void pypto_kernel_begin(const pypto::abi::Span* spans, int32_t count) {
  pypto::memory_model::select();
  pypto::bounds::allowed = {spans, count};
  pypto::note::op = -1;
  pypto::note::error = nullptr;
}
PYPTO_EXPORT int32_t pypto_kernel_op() { return pypto::note::op; }
PYPTO_EXPORT const char* pypto_kernel_error() { return pypto::note::error; }

// Notes which entry of the kernel's `ops` in kernel_config.json runs from here on. The fences keep the compiler from moving
// the note past what the operations do, which a signal handler would notice.
#define PYPTO_OP(n) \
  (__atomic_signal_fence(__ATOMIC_SEQ_CST), ::pypto::note::op = (n), __atomic_signal_fence(__ATOMIC_SEQ_CST))

// Ends the task with an error (a string literal) unless the condition holds. For the body of kernel_entry only.
#define PYPTO_REQUIRE(condition, message)   \
  do {                                      \
    if (!(condition)) {                     \
      ::pypto::note::error = (message);     \
      return;                               \
    }                                       \
  } while (false)

#endif
