// Runs a task graph on worker threads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <vector>

#include "pypto/checks.h"
#include "pypto/graph.h"
#include "pypto/memory.h"
#include "pypto/task.h"
#include "pypto/threads.h"
#include "pypto/trace.h"

namespace pypto {

// One execution of one graph. The first error in submission order is the one reported, however the threads interleave:
// after a failure, tasks submitted before the failed one still run, later ones do not start.
class Executor {
 public:
  // `first`: submission index of the graph's first task; `guarded`: buffers to be looked at after every task (checked
  // mode), or nullptr; `trace`: told of every task, or nullptr.
  Executor(Graph& graph, int32_t first, const GuardedBuffers* guarded, Trace* trace)
      : graph_(graph), first_(first), guarded_(guarded), trace_(trace) {}

  // Blocks until the run is over. At most `threads` threads work, the calling one included; 0 means as many as the
  // machine has. Independent tasks always run at the same time, so that at least two threads are used for them.
  std::optional<Failure> run(unsigned threads) {
    std::vector<Task>& tasks = graph_.tasks();
    for (size_t i = 0; i < tasks.size(); ++i)
      if (tasks[i].waits_for == 0) ready_.push(static_cast<int32_t>(i));
    std::vector<std::thread> helpers;
    if (!graph_.is_chain()) {
      const size_t most = std::min<size_t>(allowed_threads(threads), tasks.size());
      // The threads that could be made (the calling one at least) do the work.
      start_helpers(helpers, static_cast<unsigned>(most) - 1, [this](size_t number) { work(static_cast<int32_t>(number) + 1); });
    }
    work(0);
    for (std::thread& helper : helpers) helper.join();
    return std::move(failure_);
  }

 private:
  void work(int32_t worker) {
    std::optional<checks::SignalStack> stack;
    if (guarded_ != nullptr) stack.emplace();
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !ready_.empty() || running_ == 0; });
      if (ready_.empty()) return;
      const int32_t index = ready_.top();
      ready_.pop();
      if (!failure_ || first_ + index < failure_->task) {
        ++running_;
        lock.unlock();
        const int64_t begin = trace_ != nullptr ? Trace::now() : 0;
        std::optional<Failure> failure = run_task(graph_.tasks()[static_cast<size_t>(index)], first_ + index, guarded_);
        if (trace_ != nullptr) note(index, worker, begin);
        lock.lock();
        --running_;
        finish(index, std::move(failure));
      }
      if (ready_.empty() && running_ == 0) changed_.notify_all();
    }
  }

  void note(int32_t index, int32_t worker, int64_t begin) const {
    const Task& task = graph_.tasks()[static_cast<size_t>(index)];
    trace_->task(first_ + index, task.kernel->id, task.line, worker, begin, Trace::now());
  }

  void finish(int32_t index, std::optional<Failure> failure) {
    if (failure) {
      if (!failure_ || failure->task < failure_->task) failure_ = std::move(failure);
      return;
    }
    size_t released = 0;
    for (const int64_t next : graph_.tasks()[static_cast<size_t>(index)].successors) {
      if (--graph_.tasks()[static_cast<size_t>(next)].waits_for == 0) {
        ready_.push(static_cast<int32_t>(next));
        ++released;
      }
    }
    // This thread goes on with one of them.
    for (; released > 1; --released) changed_.notify_one();
  }

  Graph& graph_;
  const int32_t first_;
  const GuardedBuffers* guarded_;
  Trace* trace_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready_;  // lowest submission first
  int running_ = 0;
  std::optional<Failure> failure_;
};

}  // namespace pypto
