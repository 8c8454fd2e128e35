// Makes the assertions of the PTO-ISA simulator end the task instead of the process. Included before all of its headers.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstddef>
#include <string>

#include "pypto/fault.h"

namespace pypto {
namespace {

[[noreturn, gnu::cold, gnu::noinline]] inline void assertion_failed(const char* condition, const char* message = nullptr) {
  throw SimulatorFault("assertion failed: " + std::string(condition) +
                       (message != nullptr ? ": " + std::string(message) : std::string()));
}

}  // namespace
}  // namespace pypto

// <cassert> declares this function once, and defines `assert` by it anew each time that it is included.
#define __assert_fail(condition, file, line, function) ::pypto::assertion_failed(condition)

// The header that defines the simulator's own macro; the two forms of it are replaced where all other headers see it.
#include "pto/common/type.hpp"

#undef PTO_CPU_ASSERT_1
#undef PTO_CPU_ASSERT_2
#define PTO_CPU_ASSERT_1(condition)                          \
  do {                                                       \
    if (!(condition)) ::pypto::assertion_failed(#condition); \
  } while (0)
#define PTO_CPU_ASSERT_2(condition, message)                            \
  do {                                                                  \
    if (!(condition)) ::pypto::assertion_failed(#condition, (message)); \
  } while (0)
