// Signals between ranks: cells in memory that their processes share.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

#include "pypto/bounds.h"

namespace pypto::tiles {

// Adds to a cell, or sets it; whoever sees that sees everything that was stored before. The tile stands for what ptoas
// was shown to be written.
template <class T, class E>
inline void notify(T&, E* memory, int64_t offset, int64_t number, int64_t add) {
  static_assert(sizeof(E) == 4);
  auto* cell = reinterpret_cast<int32_t*>(memory + offset);
  bounds::require_inside(cell, sizeof(E), true);
  if (add)
    __atomic_fetch_add(cell, static_cast<int32_t>(number), __ATOMIC_SEQ_CST);
  else
    __atomic_store_n(cell, static_cast<int32_t>(number), __ATOMIC_SEQ_CST);
}

// Waits until a cell is equal to a number, or at least as large. Other ranks may need this processor to get there.
template <class T, class E>
inline void wait(T&, E* memory, int64_t offset, int64_t number, int64_t equal) {
  static_assert(sizeof(E) == 4);
  auto* cell = reinterpret_cast<int32_t*>(memory + offset);
  bounds::require_inside(cell, sizeof(E), false);
  for (int turn = 0;; ++turn) {
    const int32_t found = __atomic_load_n(cell, __ATOMIC_SEQ_CST);
    if (equal ? found == number : found >= number) return;
    if (turn < 64) {
      sched_yield();
    } else {
      const timespec moment{0, 50000};
      nanosleep(&moment, nullptr);
    }
  }
}

}  // namespace pypto::tiles
