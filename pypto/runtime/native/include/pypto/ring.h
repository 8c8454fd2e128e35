// Runs tasks while more of them are submitted: the runtime `tensormap_and_ringbuffer`.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pypto/abi.h"
#include "pypto/accesses.h"
#include "pypto/checks.h"
#include "pypto/memory.h"
#include "pypto/region.h"
#include "pypto/task.h"
#include "pypto/threads.h"
#include "pypto/trace.h"

namespace pypto {

// Thrown out of the orchestration when a task has failed: nothing more is to be submitted.
struct Stopped {};

// A bounded window of tasks in submission order. Whoever submits waits while the window, the pool of dependencies or
// the memory for workspaces is full, and runs tasks meanwhile, so that every run goes on even on one thread.
//
// A task that touches the same bytes as an earlier one, one of them writing, waits for it; all others are independent.
// The first error in submission order is the one reported: tasks submitted before a failed one still run.
class Ring {
 public:
  static constexpr size_t kWindow = size_t{1} << 14;  // tasks
  static constexpr size_t kDependencies = size_t{1} << 16;

  // Zeros stand for the defaults. At most `threads` threads run tasks, the submitting one included, but two at least;
  // 0 means as many as the machine has. `guarded` and `trace` as in Executor.
  Ring(size_t window, size_t dependencies, unsigned threads, const GuardedBuffers* guarded, Trace* trace)
      : window_(window != 0 ? window : kWindow),
        dependencies_(dependencies != 0 ? dependencies : kDependencies),
        threads_(allowed_threads(threads)),
        guarded_(guarded),
        trace_(trace) {}

  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  ~Ring() { close(); }

  // Adds a task, once there is room for it. `after` as in Graph. Throws Stopped after a failure.
  void submit(Task task, const std::vector<Access>& accesses, const std::vector<int64_t>& after) {
    std::unique_lock lock(mutex_);
    wait(lock, [this] { return nodes_.size() < window_; });
    wait(lock, [&] {
      find_predecessors(task.origin, accesses, after);
      return predecessors_.empty() || live_dependencies_ + predecessors_.size() <= dependencies_;
    });
    const int64_t index = first_ + static_cast<int64_t>(nodes_.size());
    for (const int64_t before : predecessors_) {
      node(before).task.successors.push_back(index);
      if (trace_ != nullptr) trace_->edge(static_cast<int32_t>(before), static_cast<int32_t>(index));
    }
    live_dependencies_ += predecessors_.size();
    task.waits_for = static_cast<int32_t>(predecessors_.size());
    const Origin origin = task.origin;
    nodes_.push_back({std::move(task)});
    sweep();
    for (const Access& access : accesses)
      if (access.root != Tensor::kUntracked) remember(index, origin, access);
    if (!predecessors_.empty()) return;
    ready_.push(index);
    work_.notify_one();
    // A run of one task needs no other thread.
    if (nodes_.size() > 1) add_threads(0);
  }

  // Runs tasks until `ready` holds. False when it does not although every task is over. Throws Stopped after a failure.
  template <class Condition>
  bool wait_for(Condition ready) {
    std::unique_lock lock(mutex_);
    return wait(lock, ready);
  }

  // Blocks until no task is left that writes what `access` reads. Throws Stopped after a failure.
  void wait_for_writers(const Access& access) {
    std::unique_lock lock(mutex_);
    const bool tracked = access.root != Tensor::kUntracked;
    wait(lock, [&] {
      find_predecessors({}, {access}, {});
      return tracked ? predecessors_.empty() : nodes_.empty();
    });
  }

  // Blocks until every task is over; the failure that comes first in submission order.
  std::optional<Failure> finish() {
    {
      std::unique_lock lock(mutex_);
      while (!nodes_.empty()) step(lock);
    }
    close();
    return std::move(failure_);
  }

 private:
  struct Node {
    Task task;
    bool over = false;
  };

  // Who touched one root; accesses of tasks that are over are dropped as they are met.
  struct Past {
    Accesses reads, writes;
    size_t swept_at = 64;
  };

  Node& node(int64_t index) { return nodes_[static_cast<size_t>(index - first_)]; }
  bool is_over(int64_t index) { return index < first_ || node(index).over; }

  template <class Condition>
  bool wait(std::unique_lock<std::mutex>& lock, Condition ready) {
    for (;;) {
      if (failure_) throw Stopped{};
      if (ready()) return true;
      if (nodes_.empty()) return false;
      step(lock);
    }
  }

  // The submitting thread runs a task, or waits for one that runs.
  void step(std::unique_lock<std::mutex>& lock) {
    add_threads(1);
    if (!ready_.empty())
      run_next(lock, 0);
    else
      over_.wait(lock, [this, known = finished_] { return finished_ != known || !ready_.empty(); });
  }

  void run_next(std::unique_lock<std::mutex>& lock, int32_t worker) {
    const int64_t index = ready_.top();
    ready_.pop();
    Task& task = node(index).task;
    std::optional<Failure> failure;
    if (!failure_ || index < failure_->task) {
      lock.unlock();
      const int64_t begin = trace_ != nullptr ? Trace::now() : 0;
      failure = run_task(task, static_cast<int32_t>(index), guarded_);
      if (trace_ != nullptr)
        trace_->task(static_cast<int32_t>(index), task.kernel->id, task.line, worker, begin, Trace::now());
      lock.lock();
    } else {
      task.owners.clear();
    }
    finish(index, std::move(failure));
  }

  void finish(int64_t index, std::optional<Failure> failure) {
    if (failure && (!failure_ || failure->task < failure_->task)) failure_ = std::move(failure);
    Node& done = node(index);
    done.over = true;
    ++finished_;
    live_dependencies_ -= done.task.successors.size();
    size_t released = 0;
    for (const int64_t next : done.task.successors) {
      if (--node(next).task.waits_for != 0) continue;
      ready_.push(next);
      ++released;
    }
    while (!nodes_.empty() && nodes_.front().over) {
      nodes_.pop_front();
      ++first_;
    }
    // This thread goes on with one of them.
    for (; released > 1; --released) work_.notify_one();
    over_.notify_one();
  }

  void work(int32_t worker) {
    std::optional<checks::SignalStack> stack;
    if (guarded_ != nullptr) stack.emplace();
    std::unique_lock lock(mutex_);
    for (;;) {
      ++waiting_;
      work_.wait(lock, [this] { return !ready_.empty() || closed_; });
      --waiting_;
      if (ready_.empty()) return;
      run_next(lock, worker);
    }
  }

  // Makes threads for ready tasks that nobody waits for; the submitting thread takes `own` of them itself.
  void add_threads(size_t own) {
    size_t waiting = static_cast<size_t>(waiting_) + own;
    for (; ready_.size() > waiting && helpers_.size() + 1 < threads_; ++waiting) {
      // The threads that could be made (the submitting one at least) do the work.
      if (!start_helpers(helpers_, 1, [this](size_t number) { work(static_cast<int32_t>(number) + 1); })) threads_ = 1;
    }
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    work_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
    helpers_.clear();
  }

  void find_predecessors(const Origin& origin, const std::vector<Access>& accesses, const std::vector<int64_t>& after) {
    predecessors_.clear();
    std::copy_if(after.begin(), after.end(), std::back_inserter(predecessors_), [this](int64_t task) { return !is_over(task); });
    const auto over = [this](int64_t task) { return is_over(task); };
    const auto wait_for = [this](int64_t task) { predecessors_.push_back(task); };
    for (const Access& access : accesses) {
      const auto found = past_.find(access.root);
      if (found == past_.end()) continue;
      found->second.writes.conflicts(origin, access, over, wait_for);
      if (access.writes) found->second.reads.conflicts(origin, access, over, wait_for);
    }
    std::sort(predecessors_.begin(), predecessors_.end());
    predecessors_.erase(std::unique(predecessors_.begin(), predecessors_.end()), predecessors_.end());
  }

  void drop_finished(Past& past) {
    const auto over = [this](int64_t task) { return is_over(task); };
    past.reads.remove_if(over);
    past.writes.remove_if(over);
    past.swept_at = std::max<size_t>(64, 2 * (past.reads.size() + past.writes.size()));
  }

  void remember(int64_t index, const Origin& origin, const Access& access) {
    Past& past = past_[access.root];
    if (access.writes) {
      past.reads.remove_covered(origin, access);
      past.writes.remove_covered(origin, access);
    }
    (access.writes ? past.writes : past.reads).add(PastAccess(index, origin, access));
    // What nobody meets again is dropped by nothing else.
    if (past.reads.size() + past.writes.size() >= past.swept_at) drop_finished(past);
  }

  // Roots that no task uses any more are forgotten now and then.
  void sweep() {
    if (past_.size() < sweep_at_) return;
    for (auto entry = past_.begin(); entry != past_.end();) {
      drop_finished(entry->second);
      const bool unused = entry->second.reads.empty() && entry->second.writes.empty();
      entry = unused ? past_.erase(entry) : std::next(entry);
    }
    sweep_at_ = std::max<size_t>(256, 2 * past_.size());
  }

  const size_t window_;
  const size_t dependencies_;
  unsigned threads_;
  const GuardedBuffers* guarded_;
  Trace* trace_;
  std::mutex mutex_;
  std::condition_variable work_;  // for the helpers: there are tasks
  std::condition_variable over_;  // for the submitting thread: a task is over, or there is one to run
  std::deque<Node> nodes_;        // from the oldest task that is not over
  int64_t first_ = 0;             // submission index of nodes_.front()
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> ready_;  // lowest submission first
  std::unordered_map<int32_t, Past> past_;                                    // by root
  size_t sweep_at_ = 256;
  std::vector<int64_t> predecessors_;
  size_t live_dependencies_ = 0;
  uint64_t finished_ = 0;
  int waiting_ = 0;
  bool closed_ = false;
  std::vector<std::thread> helpers_;
  std::optional<Failure> failure_;
};

}  // namespace pypto
