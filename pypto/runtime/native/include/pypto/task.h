// One task: what it runs, what it may touch, how it ended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pypto/abi.h"
#include "pypto/checks.h"
#include "pypto/fault.h"
#include "pypto/memory.h"
#include "pypto/region.h"
#include "pypto/types.h"

namespace pypto {

// Which block of which launch a task belongs to; launch 0 is none.
struct Origin {
  int64_t launch = 0;
  int64_t block = 0;
};

struct Access {
  Region region;
  int32_t root;
  bool writes;
  bool adds = false;  // does nothing but add to what is there
};

// What an earlier task did with a root.
struct PastAccess {
  int64_t task;
  Origin origin;
  bool adds;
  Region region;

  PastAccess(int64_t index, const Origin& from, const Access& access)
      : task(index), origin(from), adds(access.adds), region(access.region) {}

  // Whether nothing orders the two: the blocks of a launch only wait for each other where they add to the same memory.
  bool apart_from(const Origin& other, const Access& access) const {
    return origin.launch != 0 && origin.launch == other.launch && origin.block != other.block && !(adds && access.adds);
  }

  // Whether whoever conflicts with this later also conflicts with a later write that waited for this.
  bool covered_by(const Origin& other, const Access& access) const {
    return !apart_from(other, access) && access.region.covers(region);
  }
};

// Tasks that were submitted one after the other: submission indices from `begin` to before `end`.
struct Tasks {
  int64_t begin = 0;
  int64_t end = 0;
};

enum class Comparison { eq, ne, lt, le, gt, ge };

// A task only runs if this holds when everything it waits for is over.
struct Gate {
  Tensor element;  // one element of a dtype of whole numbers
  Comparison comparison;
  int64_t number;

  bool holds() const {
    Tensor::Extents first{};
    const int64_t value = element.element<int64_t>(first);
    switch (comparison) {
      case Comparison::eq: return value == number;
      case Comparison::ne: return value != number;
      case Comparison::lt: return value < number;
      case Comparison::le: return value <= number;
      case Comparison::gt: return value > number;
      case Comparison::ge: return value >= number;
    }
    return true;
  }
};

struct Task {
  const abi::Kernel* kernel = nullptr;
  int32_t line = 0;
  Origin origin;
  std::vector<int64_t> slots;
  std::vector<abi::Span> spans;       // what it may touch
  std::vector<Gate> gates;
  std::vector<Tensor::Owner> owners;  // keep workspaces until the task is over
  std::vector<int64_t> successors;    // submission indices
  int32_t waits_for = 0;  // number of tasks that have this one as successor
};

// Why a run ended early.
struct Failure {
  int32_t task;  // submission index
  abi::Status status;
  int32_t op;  // the operation that ran, -1 when unknown
  std::string message;
  int32_t kernel_id;
  int32_t line;
};

// Runs a task on the calling thread and lets go of its workspaces. `guarded`: buffers to be looked at afterwards
// (checked mode), or nullptr.
inline std::optional<Failure> run_task(Task& task, int32_t index, const GuardedBuffers* guarded) {
  const abi::Kernel& kernel = *task.kernel;
  if (!std::all_of(task.gates.begin(), task.gates.end(), [](const Gate& gate) { return gate.holds(); })) {
    task.owners.clear();
    return std::nullopt;
  }
  checks::current = {&kernel, index, task.line};
  std::optional<Failure> failure;
  const auto failed = [&](abi::Status status, int32_t op, const char* message) {
    failure = Failure{index, status, op, message, kernel.id, task.line};
  };
  try {
    kernel.begin(task.spans.data(), static_cast<int32_t>(task.spans.size()));
    kernel.entry(task.slots.data());
    if (const char* error = kernel.error()) failed(abi::kTaskFailed, kernel.op(), error);
  } catch (const SimulatorFault& fault) {
    failed(abi::kSimulatorFault, kernel.op(), fault.what());
  } catch (const std::exception& error) {
    failed(abi::kTaskFailed, kernel.op(), error.what());
  } catch (...) {
    failed(abi::kTaskFailed, kernel.op(), "an exception of an unknown type");
  }
  checks::current = {nullptr, -1, 0};
  if (guarded != nullptr && !failure && guarded->breached() >= 0) failed(abi::kGuardOverwritten, -1, "");
  task.owners.clear();
  return failure;
}

}  // namespace pypto
