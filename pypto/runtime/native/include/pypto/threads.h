// Threads of a run beside the one that called.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "pypto/checks.h"

namespace pypto {

// How many threads may run tasks; `asked` 0 means as many as the machine has. Independent tasks always run at the same
// time, so that it is two at least.
inline unsigned allowed_threads(unsigned asked) {
  // Asked once: the system takes as long to tell as a small run takes.
  static const unsigned machine = std::thread::hardware_concurrency();
  return std::max(asked != 0 ? asked : machine, 2u);
}

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
