// What generated orchestration code is written against: parameters, workspaces, submission of tasks.
// The C functions that the host calls are defined by PYPTO_ORCHESTRATION.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pypto/abi.h"
#include "pypto/checks.h"
#include "pypto/executor.h"
#include "pypto/graph.h"
#include "pypto/memory.h"
#include "pypto/ring.h"
#include "pypto/task.h"
#include "pypto/trace.h"
#include "pypto/types.h"

namespace pypto {

class Orchestrator;

// One task being put together; it joins the graph when the full expression ends.
class TaskBuilder {
 public:
  TaskBuilder(const TaskBuilder&) = delete;
  TaskBuilder& operator=(const TaskBuilder&) = delete;
  inline ~TaskBuilder() noexcept(false);

  // A tensor that the task only reads. Here and below, `part` is what it touches of the tensor, if not all.
  TaskBuilder& in(const Tensor& tensor) { return in(tensor, tensor); }
  TaskBuilder& in(const Tensor& tensor, const Tensor& part) { return tensor_argument(tensor, part, false); }
  // A tensor that the task writes without reading it first.
  TaskBuilder& out(const Tensor& tensor) { return out(tensor, tensor); }
  TaskBuilder& out(const Tensor& tensor, const Tensor& part) { return tensor_argument(tensor, part, true); }
  // A tensor that the task reads and writes.
  TaskBuilder& inout(const Tensor& tensor) { return inout(tensor, tensor); }
  TaskBuilder& inout(const Tensor& tensor, const Tensor& part) { return tensor_argument(tensor, part, true); }
  // A tensor that the task does nothing to but adding.
  TaskBuilder& add(const Tensor& tensor) { return add(tensor, tensor); }
  TaskBuilder& add(const Tensor& tensor, const Tensor& part) {
    tensor_argument(tensor, part, true);
    accesses_.back().adds = true;
    return *this;
  }

  TaskBuilder& i64(int64_t value) {
    task_.slots.push_back(value);
    return *this;
  }
  TaskBuilder& f32(float value) { return i64(static_cast<int64_t>(__builtin_bit_cast(uint32_t, value))); }
  TaskBuilder& f64(double value) { return i64(__builtin_bit_cast(int64_t, value)); }

  // The line of the call, counted from the first line of the entry function.
  TaskBuilder& at(int32_t line) {
    task_.line = line;
    return *this;
  }

 private:
  friend class Orchestrator;
  TaskBuilder(Orchestrator& orchestrator, const abi::Kernel& kernel)
      : orchestrator_(orchestrator), exceptions_(std::uncaught_exceptions()) {
    task_.kernel = &kernel;
  }

  inline TaskBuilder& tensor_argument(const Tensor& tensor, const Tensor& part, bool writes);

  Orchestrator& orchestrator_;
  int exceptions_;
  Task task_;
  std::vector<Access> accesses_;
};

// The parameters, workspaces and tasks of one run.
class Orchestrator {
 public:
  // Bytes for workspaces where tasks run while more are submitted, unless the caller says how many.
  static constexpr int64_t kHeap = int64_t{1} << 30;

  explicit Orchestrator(const abi::RunRequest& request)
      : request_(request),
        checked_((request.flags & abi::kChecked) != 0),
        workspaces_(checked_ ? &guarded_ : nullptr, heap_of(request)),
        roots_(request.argument_count, -1) {
    for (uint32_t i = 0; i < request.kernel_count; ++i) kernels_.emplace(request.kernels[i].id, &request.kernels[i]);
    if (checked_) {
      guard_arguments();
      if (request.report_fd >= 0) checks::install(request.report_fd, guarded_);
    }
    number_roots();
    if (Trace::wanted(request)) trace_.emplace(request);
    if ((request.flags & abi::kRing) != 0)
      ring_.emplace(request.ring_task_window, request.ring_dep_pool, request.threads, guarded(), traced());
  }

  // A tensor parameter, by its position among all parameters.
  Tensor tensor(int index) const {
    const abi::Argument& argument = parameter(index, abi::kTensor);
    return Tensor(memory_of(index), static_cast<DType>(argument.dtype), argument.rank, extents(argument.shape),
                  extents(argument.strides), roots_[static_cast<size_t>(index)]);
  }

  // A scalar parameter as a number of type T, which must be able to hold it.
  template <class T>
  T scalar(int index) const {
    static_assert(std::is_arithmetic_v<T>);
    const abi::Argument& argument = parameter(index, abi::kScalar);
    const DType dtype = static_cast<DType>(argument.dtype);
    if (is_float(dtype)) {
      if constexpr (std::is_floating_point_v<T>) return static_cast<T>(__builtin_bit_cast(double, argument.scalar));
      throw Error("floating-point parameter '" + std::string(argument.name) + "' was read as an integer");
    }
    if (dtype == DType::UINT64) return converted<T>(argument.scalar, argument.name);
    return converted<T>(static_cast<int64_t>(argument.scalar), argument.name);
  }

  // A dense workspace with unspecified contents; its memory lives as long as a handle or a task that needs it.
  Tensor create(DType dtype, std::initializer_list<int64_t> shape) {
    if (shape.size() < 1 || shape.size() > static_cast<size_t>(abi::kMaxRank))
      throw Error("a workspace of rank " + std::to_string(shape.size()) + "; the rank is 1 to " +
                  std::to_string(abi::kMaxRank));
    Tensor::Extents lengths{}, strides{};
    std::copy(shape.begin(), shape.end(), lengths.begin());
    const int rank = static_cast<int>(shape.size());
    int64_t elements = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t length = lengths[static_cast<size_t>(axis)];
      strides[static_cast<size_t>(axis)] = elements;
      if (length < 0 || length > kMaxElements / std::max<int64_t>(elements, 1))
        throw Error("a workspace with axis " + std::to_string(axis) + " of length " + std::to_string(length) +
                    "; a tensor has at most " + std::to_string(kMaxElements) + " elements");
      elements *= length;
    }
    const int64_t bytes = std::max<int64_t>(elements, 1) * size_of(dtype);
    if (ring_) wait_for_room(bytes);
    auto [data, owner] = workspaces_.make(bytes);
    return Tensor(data, dtype, rank, lengths, strides, next_root_++, std::move(owner));
  }

  // A task for the kernel with this function id. Add its arguments in the order of the kernel's parameters.
  TaskBuilder submit(int32_t function_id) {
    const auto found = kernels_.find(function_id);
    if (found == kernels_.end()) throw Error("no kernel has the function id " + std::to_string(function_id));
    // The whole graph is held before the first task runs; a length that is far too large must not fill the memory.
    if (!ring_ && graph_.size() >= kMaxTasks)
      throw Error("the run submits more than " + std::to_string(kMaxTasks) +
                  " tasks; check the run-time numbers that its loops depend on");
    return TaskBuilder(*this, *found->second);
  }

  // What orders the tasks of a group among each other.
  enum class Order {
    data,    // what they read and write
    serial,  // that, and each waits for the one before it
    blocks,  // that within what `block` begins; the blocks are independent
  };

  // Begins a group of tasks. Each task submitted before the matching `leave` waits for `after`, whatever they touch.
  void enter(std::initializer_list<Tasks> after, Order order = Order::data) {
    groups_.push_back({submissions_, after, {}, order, ++entered_, 0});
  }

  // Begins the next block of the innermost group.
  void block() { ++groups_.back().block; }

  // Tasks of the innermost group only run if this element, which the group waits for, fulfils the condition by then.
  void when(const Tensor& element, Comparison comparison, int64_t number) {
    groups_.back().gates.push_back({element, comparison, number});
  }

  // Ends the innermost group and gives its tasks.
  Tasks leave() {
    const Tasks tasks{groups_.back().begin, submissions_};
    groups_.pop_back();
    return tasks;
  }

  // One element of any tensor as a number, when no task is left that writes the tensor.
  template <class T>
  T element(const Tensor& tensor, std::initializer_list<int64_t> indices) {
    if (ring_)
      ring_->wait_for_writers({Region::of(tensor), tensor.root(), false});
    else
      run_so_far();
    return tensor.element<T>(indices);
  }

  // Whether tasks run while more of them are submitted.
  bool streams() const { return ring_.has_value(); }

  // Ends the run with an error.
  [[noreturn]] void fail(const std::string& message) const { throw Error(message); }

  // Ends the run with an error unless the condition holds.
  void require(bool condition, const char* message) const {
    if (!condition) throw Error(message);
  }

  std::optional<Failure> execute() {
    if (trace_) trace_->submitted();
    std::optional<Failure> failure = ring_ ? ring_->finish() : failure_ ? std::move(failure_) : run_graph();
    if (trace_) trace_->write();
    if (!checked_) return failure;
    if (failure && failure->status == abi::kGuardOverwritten) failure->message = describe_breach();
    if (!failure) copy_results_back();
    return failure;
  }

 private:
  friend class TaskBuilder;

  static int64_t heap_of(const abi::RunRequest& request) {
    if ((request.flags & abi::kRing) == 0) return INT64_MAX;
    if (request.ring_heap == 0) return kHeap;
    return static_cast<int64_t>(std::min<uint64_t>(request.ring_heap, INT64_MAX));
  }

  const GuardedBuffers* guarded() const { return checked_ ? &guarded_ : nullptr; }
  Trace* traced() { return trace_ && trace_->wants_tasks() ? &*trace_ : nullptr; }

  struct Group {
    int64_t begin;
    std::vector<Tasks> after;
    std::vector<Gate> gates;
    Order order;
    int64_t number;  // of the group
    int64_t block;
  };

  void submit(Task task, std::vector<Access> accesses) {
    std::vector<int64_t> after;
    for (const Group& group : groups_) {
      for (const Tasks& tasks : group.after)
        for (int64_t before = tasks.begin; before < tasks.end; ++before) after.push_back(before);
      if (group.order == Order::serial && submissions_ > group.begin) after.push_back(submissions_ - 1);
      if (group.order == Order::blocks) task.origin = {group.number, group.block};
      for (const Gate& gate : group.gates) {
        accesses.push_back({Region::of(gate.element), gate.element.root(), false});
        if (gate.element.owner() != nullptr) task.owners.push_back(gate.element.owner());
        task.gates.push_back(gate);
      }
    }
    ++submissions_;
    if (ring_) {
      ring_->submit(std::move(task), accesses, after);
      return;
    }
    std::erase_if(after, [this](int64_t before) { return before < over_; });
    for (int64_t& before : after) before -= over_;
    graph_.add(std::move(task), accesses, after);
  }

  std::optional<Failure> run_graph() {
    std::optional<Failure> failure =
        Executor(graph_, static_cast<int32_t>(over_), guarded(), traced()).run(request_.threads);
    if (traced() != nullptr) trace_edges();
    return failure;
  }

  // Runs what was submitted, since the orchestration depends on its results.
  void run_so_far() {
    failure_ = run_graph();
    if (failure_) throw Stopped{};
    graph_.clear();
    over_ = submissions_;
  }

  void wait_for_room(int64_t bytes) {
    const std::string limit = std::to_string(workspaces_.limit());
    if (bytes > workspaces_.limit())
      throw Error("a workspace of " + std::to_string(bytes) + " bytes is larger than all memory for workspaces, " + limit +
                  " bytes; raise RunConfig(ring_heap=...)");
    if (ring_->wait_for([&] { return workspaces_.fits(bytes); })) return;
    if (workspaces_.fits(bytes)) return;
    throw Error("no room for a workspace of " + std::to_string(bytes) + " bytes: of the " + limit +
                " bytes for workspaces, " + std::to_string(workspaces_.used()) +
                " hold ones that are used again later; raise RunConfig(ring_heap=...)");
  }

  static Tensor::Extents extents(const int64_t* values) {
    Tensor::Extents result;
    std::copy(values, values + abi::kMaxRank, result.begin());
    return result;
  }

  template <class T, class V>
  static T converted(V value, const char* name) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!std::in_range<T>(value))
        throw Error("the value " + std::to_string(value) + " of parameter '" + name + "' does not fit where it is used");
    }
    return static_cast<T>(value);
  }

  const abi::Argument& parameter(int index, abi::ArgumentKind kind) const {
    if (index < 0 || static_cast<uint32_t>(index) >= request_.argument_count)
      throw Error("there is no parameter " + std::to_string(index));
    const abi::Argument& argument = request_.arguments[index];
    if (argument.kind != kind)
      throw Error("parameter '" + std::string(argument.name) + "' is not a " +
                  (kind == abi::kTensor ? "tensor" : "scalar"));
    return argument;
  }

  static int64_t bytes_of(const abi::Argument& argument) {
    int64_t elements = 1;
    for (int axis = 0; axis < argument.rank; ++axis) elements *= argument.shape[axis];
    return elements * size_of(static_cast<DType>(argument.dtype));
  }

  // In checked mode buffer i holds a guarded copy of argument i (a single byte stands for a scalar).
  void guard_arguments() {
    for (uint32_t i = 0; i < request_.argument_count; ++i) {
      const abi::Argument& argument = request_.arguments[i];
      const bool is_tensor = argument.kind == abi::kTensor;
      const Buffer& buffer = guarded_.add(is_tensor ? bytes_of(argument) : 1);
      arguments_.push_back(&buffer);
      if (!is_tensor) continue;
      std::memcpy(buffer.data(), argument.data, static_cast<size_t>(buffer.size()));
      if (argument.direction == abi::kIn) buffer.protect();
    }
  }

  void copy_results_back() const {
    for (uint32_t i = 0; i < request_.argument_count; ++i) {
      const abi::Argument& argument = request_.arguments[i];
      if (argument.kind == abi::kTensor && argument.direction != abi::kIn)
        std::memcpy(argument.data, arguments_[i]->data(), static_cast<size_t>(arguments_[i]->size()));
    }
  }

  void* memory_of(int index) const {
    return checked_ ? arguments_[static_cast<size_t>(index)]->data() : request_.arguments[index].data;
  }

  // Parameters whose memory overlaps share a root, because tasks are only compared within one.
  void number_roots() {
    for (uint32_t i = 0; i < request_.argument_count; ++i) {
      if (request_.arguments[i].kind != abi::kTensor) continue;
      roots_[i] = next_root_++;
      const int32_t own = roots_[i];
      const Region region = Region::of(tensor(static_cast<int>(i)));
      for (uint32_t j = 0; j < i; ++j) {
        if (roots_[j] < 0 || roots_[j] == roots_[i]) continue;
        const Region other = Region::of(tensor(static_cast<int>(j)));
        if (region.end <= other.begin || other.end <= region.begin) continue;
        const int32_t merged = roots_[j], dropped = roots_[i];
        std::replace(roots_.begin(), roots_.end(), dropped, merged);
      }
      if (roots_[i] != own) --next_root_;
    }
  }

  void trace_edges() {
    for (size_t i = 0; i < graph_.size(); ++i)
      for (const int32_t next : graph_.tasks()[i].successors) 
        trace_->edge(static_cast<int32_t>(over_ + static_cast<int64_t>(i)), static_cast<int32_t>(over_ + next));
  }

  std::string describe_breach() const {
    const int32_t found = guarded_.breached();
    if (found < 0) return "memory just outside of a tensor was overwritten";
    const uint32_t position = static_cast<uint32_t>(found);
    if (position < request_.argument_count)
      return "memory just outside of tensor '" + std::string(request_.arguments[position].name) + "' was overwritten";
    return "memory just outside of workspace " + std::to_string(position - request_.argument_count) + " was overwritten";
  }

  const abi::RunRequest& request_;
  const bool checked_;
  GuardedBuffers guarded_;                // checked mode: one per argument first; then the workspaces
  std::vector<const Buffer*> arguments_;  // checked mode: those of the arguments
  Workspaces workspaces_;
  std::vector<int32_t> roots_;  // by parameter; -1 for scalars
  int32_t next_root_ = 0;
  int64_t submissions_ = 0;
  std::vector<Group> groups_;
  int64_t entered_ = 0;
  std::unordered_map<int32_t, const abi::Kernel*> kernels_;
  std::optional<Trace> trace_;
  Graph graph_;
  int64_t over_ = 0;  // tasks that have run before the graph's first one
  std::optional<Failure> failure_;
  std::optional<Ring> ring_;  // instead of the graph
};

inline TaskBuilder& TaskBuilder::tensor_argument(const Tensor& tensor, const Tensor& part, bool writes) {
  if (tensor.root() < 0) throw Error(std::string("task '") + task_.kernel->name + "' got a tensor that was never made");
  for (int axis = 0; axis < tensor.rank(); ++axis)
    if (tensor.dim(axis) < 1)
      throw Error(std::string("an empty tensor: axis ") + std::to_string(axis) + " of what task '" +
                  task_.kernel->name + "' is given has no elements; do it under `if` there are some");
  const Region touched = Region::of(part);
  // Checked runs hold the task to what it was said to touch.
  const Region allowed = orchestrator_.checked_ ? touched : Region::of(tensor);
  const auto slot = static_cast<int32_t>(task_.slots.size());
  task_.spans.push_back(
      {static_cast<uint64_t>(allowed.begin), static_cast<uint64_t>(allowed.end), slot, writes ? 1 : 0});
  accesses_.push_back({touched, tensor.root(), writes});
  if (tensor.owner() != nullptr) task_.owners.push_back(tensor.owner());
  return i64(static_cast<int64_t>(reinterpret_cast<intptr_t>(tensor.data())));
}

inline TaskBuilder::~TaskBuilder() noexcept(false) {
  // An argument that threw leaves nothing to submit.
  if (std::uncaught_exceptions() != exceptions_) return;
  orchestrator_.submit(std::move(task_), std::move(accesses_));
}

namespace detail {

inline void set_message(abi::RunResult& result, const std::string& message) {
  const size_t length = std::min(message.size(), sizeof(result.message) - 1);
  std::memcpy(result.message, message.data(), length);
  result.message[length] = '\0';
}

inline int32_t run(void (*orchestrate)(Orchestrator&), uint32_t parameters, const abi::RunRequest& request,
                   abi::RunResult& result) {
  result.status = abi::kBadRequest;
  result.task = result.kernel_id = result.op = -1;
  result.line = 0;
  result.message[0] = '\0';
  if (request.struct_size != sizeof(request) || request.abi_version != PYPTO_RUNTIME_ABI) {
    set_message(result, "the host speaks runtime ABI " + std::to_string(request.abi_version) +
                            ", this object was built for " + std::to_string(PYPTO_RUNTIME_ABI));
    return result.status;
  }
  if (request.argument_count != parameters) {
    set_message(result, std::to_string(request.argument_count) + " arguments for " + std::to_string(parameters) +
                            " parameters");
    return result.status;
  }
  try {
    result.status = abi::kOrchestrationFailed;
    Orchestrator orchestrator(request);
    std::exception_ptr error;
    try {
      orchestrate(orchestrator);
    } catch (const Stopped&) {
      // The failure is known below.
    } catch (...) {
      if (!orchestrator.streams()) throw;
      error = std::current_exception();
    }
    // Tasks were submitted before the orchestration failed, so that their failures come first.
    if (const std::optional<Failure> failure = orchestrator.execute()) {
      result.status = failure->status;
      result.task = failure->task;
      result.kernel_id = failure->kernel_id;
      result.line = failure->line;
      result.op = failure->op;
      set_message(result, failure->message);
    } else if (error) {
      std::rethrow_exception(error);
    } else {
      result.status = abi::kOk;
    }
  } catch (const std::exception& error) {
    set_message(result, error.what());
  } catch (...) {
    set_message(result, "an exception of an unknown type");
  }
  return result.status;
}

}  // namespace detail
}  // namespace pypto

// Exports the C functions of this orchestration object: ABI version, number of parameters, run.
#define PYPTO_ORCHESTRATION(function, parameters)                                                               \
  PYPTO_EXPORT uint32_t pypto_abi_version() { return PYPTO_RUNTIME_ABI; }                                       \
  PYPTO_EXPORT uint32_t pypto_parameter_count() { return (parameters); }                                        \
  PYPTO_EXPORT int32_t pypto_run(const ::pypto::abi::RunRequest* request, ::pypto::abi::RunResult* result) {    \
    return ::pypto::detail::run((function), (parameters), *request, *result);                                  \
  }
