// The task graph of one run: tasks in submission order, and who must wait for whom.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "pypto/accesses.h"
#include "pypto/task.h"
#include "pypto/types.h"

namespace pypto {

// More tasks than any model submits at once; their graph takes about a gigabyte.
inline constexpr size_t kMaxTasks = size_t{1} << 20;

// Tasks that touch the same byte, one of them writing it, run in submission order; all others are independent.
class Graph {
 public:
  std::vector<Task>& tasks() { return tasks_; }
  size_t size() const { return tasks_.size(); }

  // Forgets tasks that are over.
  void clear() {
    tasks_.clear();
    past_.clear();
  }

  // `after`: submission indices of tasks that this one waits for in any case.
  void add(Task task, const std::vector<Access>& accesses, const std::vector<int64_t>& after) {
    const int32_t index = static_cast<int32_t>(tasks_.size());
    const Origin origin = task.origin;
    tasks_.push_back(std::move(task));
    for (const int64_t before : after) order_after_task(before, index);
    for (const Access& access : accesses)
      if (access.root != Tensor::kUntracked) order_after_conflicts(index, origin, access);
  }

  // Whether the tasks can only run one after the other.
  bool is_chain() const {
    for (size_t i = 1; i < tasks_.size(); ++i) {
      const std::vector<int64_t>& next = tasks_[i - 1].successors;
      if (next.empty() || next.front() != static_cast<int64_t>(i)) return false;
    }
    return true;
  }

 private:
  // Reads never wait for reads: apart from writes, thousands of tasks that read one tensor are no work.
  struct Past {
    Accesses reads, writes;
  };

  void order_after_conflicts(int32_t index, const Origin& origin, const Access& access) {
    const size_t root = static_cast<size_t>(access.root);
    if (past_.size() <= root) past_.resize(root + 1);
    Past& past = past_[root];
    const auto never = [](int64_t) { return false; };
    const auto order = [&](int64_t earlier) {
      if (earlier != index) order_after_task(earlier, index);
    };
    past.writes.conflicts(origin, access, never, order);
    if (access.writes) {
      past.reads.conflicts(origin, access, never, order);
      past.reads.remove_covered(origin, access);
      past.writes.remove_covered(origin, access);
    }
    (access.writes ? past.writes : past.reads).add(PastAccess(index, origin, access));
  }

  // Successors are added in ascending order, so that a repeated edge is the last one.
  bool is_ordered(int64_t before, int64_t index) const {
    const std::vector<int64_t>& next = tasks_[static_cast<size_t>(before)].successors;
    return !next.empty() && next.back() == index;
  }

  void order_after_task(int64_t before, int64_t index) {
    if (is_ordered(before, index)) return;
    tasks_[static_cast<size_t>(before)].successors.push_back(index);
    ++tasks_.back().waits_for;
  }

  std::vector<Task> tasks_;
  std::vector<Past> past_;  // by root
};

}  // namespace pypto
