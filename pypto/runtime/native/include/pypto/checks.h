// Checked mode: who was running when a signal ended the process, and whose memory was touched.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "pypto/abi.h"
#include "pypto/memory.h"

namespace pypto::checks {
namespace {

// What the calling thread works on, for the signal handler.
struct Current {
  const abi::Kernel* kernel;
  int32_t task;
  int32_t line;
};
thread_local Current current{nullptr, -1, 0};

// Set before the graph is built.
const GuardedBuffers* watched = nullptr;
int report_fd = -1;

inline constexpr std::array<int, 5> kSignals{SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

// Ends the process with the default action of the signal after having reported it. Async-signal-safe.
extern "C" inline void pypto_report_crash(int signal_number, siginfo_t* info, void*) {
  abi::CrashReport report{};
  report.struct_size = sizeof(report);
  report.signal = signal_number;
  report.task = current.task;
  report.line = current.line;
  report.kernel_id = current.kernel != nullptr ? current.kernel->id : -1;
  report.op = current.kernel != nullptr ? current.kernel->op() : -1;
  report.buffer = -1;
  if (watched != nullptr && (signal_number == SIGSEGV || signal_number == SIGBUS)) {
    watched->each([&](int32_t position, const Buffer& buffer) {
      if (!buffer.is_near(info->si_addr)) return false;
      report.buffer = position;
      report.offset = static_cast<const std::byte*>(info->si_addr) - buffer.data();
      report.buffer_size = buffer.size();
      return true;
    });
  }
  const ssize_t written = write(report_fd, &report, sizeof(report));
  (void)written;  // nobody is left to tell
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// Installs the handler; for a process that exists for one run only.
inline void install(int fd, const GuardedBuffers& buffers) {
  watched = &buffers;
  report_fd = fd;
  struct sigaction action {};
  action.sa_sigaction = pypto_report_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  sigemptyset(&action.sa_mask);
  for (int number : kSignals) sigaction(number, &action, nullptr);
}

// A signal stack for the calling thread, so that a stack overflow is reported too.
class SignalStack {
 public:
  SignalStack() : memory_(new std::byte[kSize]) {
    stack_t stack{};
    stack.ss_sp = memory_.get();
    stack.ss_size = kSize;
    sigaltstack(&stack, &previous_);
  }
  ~SignalStack() { sigaltstack(&previous_, nullptr); }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr size_t kSize = 64 * 1024;
  std::unique_ptr<std::byte[]> memory_;
  stack_t previous_{};
};

}  // namespace
}  // namespace pypto::checks
