// Traced runs: which task ran where and when, and which task waited for which.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <vector>

#include "pypto/abi.h"

namespace pypto {

// What one run leaves behind for whoever asked with kTimed or kTraced. Safe to use from several threads.
class Trace {
 public:
  explicit Trace(const abi::RunRequest& request)
      : fd_(request.trace_fd), tasks_wanted_((request.flags & abi::kTraced) != 0), begin_(now()), submitted_(begin_) {}

  static bool wanted(const abi::RunRequest& request) {
    return (request.flags & (abi::kTimed | abi::kTraced)) != 0 && request.trace_fd >= 0;
  }

  static int64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  // Whether tasks and edges are to be told.
  bool wants_tasks() const { return tasks_wanted_; }

  // All tasks of the graph are known, or (where they run meanwhile) have been submitted.
  void submitted() { submitted_ = now(); }

  // A task that ran; `index` counts submissions, `worker` the threads (0: the one that called).
  void task(int32_t index, int32_t kernel_id, int32_t line, int32_t worker, int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back({index, kernel_id, line, worker, begin, end});
  }

  // Task `target` had to wait for task `source`.
  void edge(int32_t source, int32_t target) {
    const std::lock_guard lock(mutex_);
    edges_.push_back({source, target});
  }

  // Writes everything; called once, after the last task.
  void write() const {
    const abi::TraceHeader header{static_cast<uint32_t>(sizeof(abi::TraceHeader)),
                                  static_cast<uint32_t>(tasks_.size()),
                                  static_cast<uint32_t>(edges_.size()),
                                  0,
                                  begin_,
                                  submitted_,
                                  now()};
    put(&header, sizeof(header));
    put(tasks_.data(), tasks_.size() * sizeof(abi::TraceTask));
    put(edges_.data(), edges_.size() * sizeof(abi::TraceEdge));
  }

 private:
  // What cannot be written is missing; the host notices by the sizes in the header.
  void put(const void* data, size_t size) const {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(fd_, at, size);
      if (written <= 0) return;
      at += written;
      size -= static_cast<size_t>(written);
    }
  }

  const int fd_;
  const bool tasks_wanted_;
  const int64_t begin_;
  int64_t submitted_;
  std::mutex mutex_;
  std::vector<abi::TraceTask> tasks_;
  std::vector<abi::TraceEdge> edges_;
};

}  // namespace pypto
