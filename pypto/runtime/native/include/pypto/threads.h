// Threads of a run beside the one that called.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>
#include <vector>

#include "pypto/checks.h"

namespace pypto {

// Adds threads that each run `work(position in helpers)`; false when the system gives no more of them.
// Helpers take no asynchronous signals: those belong to the threads of the host.
template <class Work>
bool start_helpers(std::vector<std::thread>& helpers, unsigned count, Work work) {
  sigset_t blocked, previous;
  sigfillset(&blocked);
  for (int number : checks::kSignals) sigdelset(&blocked, number);
  pthread_sigmask(SIG_SETMASK, &blocked, &previous);
  bool made = true;
  try {
    helpers.reserve(helpers.size() + count);
    for (unsigned i = 0; i < count; ++i) helpers.emplace_back(work, helpers.size());
  } catch (const std::system_error&) {
    made = false;
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return made;
}

}  // namespace pypto
