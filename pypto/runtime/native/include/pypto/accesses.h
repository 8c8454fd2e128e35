// Who touched the bytes of one allocation, found by address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "pypto/region.h"
#include "pypto/task.h"

namespace pypto {

// Accesses of one kind (reads or writes) to one allocation.
class Accesses {
 public:
  size_t size() const { return by_begin_.size(); }
  bool empty() const { return by_begin_.empty(); }

  void add(const PastAccess& access) {
    longest_ = std::max(longest_, access.region.end - access.region.begin);
    by_begin_.emplace(access.region.begin, access);
  }

  // Calls `found(task)` for every access that a later one has to wait for. Those of tasks that `forget(task)` holds for
  // are removed where they are met.
  template <class Forget, class Found>
  void conflicts(const Origin& origin, const Access& later, Forget forget, Found found) {
    auto at = by_begin_.lower_bound(later.region.begin - longest_);
    while (at != by_begin_.end() && at->first < later.region.end) {
      const PastAccess& earlier = at->second;
      if (forget(earlier.task)) {
        at = by_begin_.erase(at);
        continue;
      }
      if (!earlier.apart_from(origin, later) && overlaps(earlier.region, later.region)) found(earlier.task);
      ++at;
    }
  }

  // Removes what a later write makes superfluous.
  void remove_covered(const Origin& origin, const Access& later) {
    auto at = by_begin_.lower_bound(later.region.begin);
    while (at != by_begin_.end() && at->first < later.region.end)
      at = at->second.covered_by(origin, later) ? by_begin_.erase(at) : std::next(at);
  }

  template <class Forget>
  void remove_if(Forget forget) {
    std::erase_if(by_begin_, [&](const auto& entry) { return forget(entry.second.task); });
    if (by_begin_.empty()) longest_ = 0;
  }

 private:
  std::multimap<int64_t, PastAccess> by_begin_;
  int64_t longest_ = 0;  // bytes from begin to end, of any access so far
};

}  // namespace pypto
