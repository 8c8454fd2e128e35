// The task graph of one run: tasks in submission order, and who must wait for whom.
#pragma once

#include <cstdint>
#include <vector>

#include "pypto/abi.h"
#include "pypto/region.h"
#include "pypto/types.h"

namespace pypto {

// More tasks than any model submits at once; their graph takes about a gigabyte.
inline constexpr size_t kMaxTasks = size_t{1} << 20;

struct Access {
  Region region;
  int32_t root;
  int32_t argument;  // position among the task's arguments
  bool writes;
};

struct Task {
  const abi::Kernel* kernel = nullptr;
  int32_t line = 0;
  std::vector<int64_t> slots;
  std::vector<abi::Span> spans;
  std::vector<int32_t> successors;
  int32_t waits_for = 0;  // number of tasks that have this one as successor
};

// Tasks that touch the same byte, one of them writing it, run in submission order; all others are independent.
class Graph {
 public:
  std::vector<Task>& tasks() { return tasks_; }
  size_t size() const { return tasks_.size(); }

  void add(const abi::Kernel& kernel, int32_t line, std::vector<int64_t> slots, const std::vector<Access>& accesses) {
    const int32_t index = static_cast<int32_t>(tasks_.size());
    tasks_.emplace_back();
    tasks_.back().kernel = &kernel;
    tasks_.back().line = line;
    tasks_.back().slots = std::move(slots);
    for (const Access& access : accesses) {
      tasks_.back().spans.push_back({static_cast<uint64_t>(access.region.begin), static_cast<uint64_t>(access.region.end),
                                     access.argument, access.writes ? 1 : 0});
      order_after_conflicts(index, access);
    }
  }

  // Whether the tasks can only run one after the other.
  bool is_chain() const {
    for (size_t i = 1; i < tasks_.size(); ++i) {
      const std::vector<int32_t>& next = tasks_[i - 1].successors;
      if (next.empty() || next.front() != static_cast<int32_t>(i)) return false;
    }
    return true;
  }

 private:
  struct PastAccess {
    int32_t task;
    Region region;
  };

  // Reads never wait for reads: apart from writes, thousands of tasks that read one tensor are no work.
  struct Past {
    std::vector<PastAccess> reads, writes;
  };

  void order_after_conflicts(int32_t index, const Access& access) {
    const size_t root = static_cast<size_t>(access.root);
    if (past_.size() <= root) past_.resize(root + 1);
    Past& past = past_[root];
    order_after(past.writes, index, access.region);
    if (!access.writes) {
      past.reads.push_back({index, access.region});
      return;
    }
    order_after(past.reads, index, access.region);
    // Whoever conflicts with a covered access later also conflicts with this write.
    for (std::vector<PastAccess>* list : {&past.reads, &past.writes})
      std::erase_if(*list, [&](const PastAccess& earlier) { return access.region.covers(earlier.region); });
    past.writes.push_back({index, access.region});
  }

  void order_after(const std::vector<PastAccess>& accesses, int32_t index, const Region& region) {
    for (const PastAccess& earlier : accesses) {
      if (earlier.task == index) continue;
      // Successors are added in ascending order, so that a repeated edge is the last one.
      std::vector<int32_t>& next = tasks_[static_cast<size_t>(earlier.task)].successors;
      if (!next.empty() && next.back() == index) continue;
      if (!overlaps(earlier.region, region)) continue;
      next.push_back(index);
      ++tasks_.back().waits_for;
    }
  }

  std::vector<Task> tasks_;
  std::vector<Past> past_;  // by root
};

}  // namespace pypto
