// The C interface between the host (Python's ctypes) and an orchestration object.
// pypto/runtime/abi.py mirrors every structure; a test compares sizes and offsets.
#pragma once

#include <cstdint>

#define PYPTO_RUNTIME_ABI 1
#define PYPTO_EXPORT extern "C" __attribute__((visibility("default")))

namespace pypto::abi {

inline constexpr int kMaxRank = 8;
inline constexpr int kMessageSize = 1024;

enum ArgumentKind : int32_t { kTensor = 0, kScalar = 1 };
enum Direction : int32_t { kIn = 0, kOut = 1, kInOut = 2 };

// Bits of RunRequest::flags.
enum RunFlag : uint32_t {
  kChecked = 1,
  kTimed = 2,   // write a TraceHeader to trace_fd
  kTraced = 4,  // write a TraceHeader and what ran to trace_fd
  kRing = 8,    // tasks run while more are submitted: the runtime tensormap_and_ringbuffer
};

enum Status : int32_t {
  kOk = 0,
  kBadRequest = 1,           // the host and this object do not fit together
  kOrchestrationFailed = 2,  // an error while the graph was built
  kTaskFailed = 3,           // a kernel reported an error
  kGuardOverwritten = 4,     // checked mode: memory around a tensor was overwritten, by the task or a concurrent one
  kSimulatorFault = 5,       // the simulator refused what a task did: an assertion, or an access outside of its tensors
};

struct Argument {
  int32_t kind;       // ArgumentKind
  int32_t dtype;      // DType
  int32_t direction;  // Direction
  int32_t rank;
  void* data;                 // tensors: first element
  uint64_t scalar;            // scalars: the bits of an int64_t, a uint64_t (UINT64) or a double (floats)
  int64_t shape[kMaxRank];    // elements
  int64_t strides[kMaxRank];  // elements
  const char* name;
};

// Memory that a task may touch: the addresses of one tensor argument.
struct Span {
  uint64_t begin;
  uint64_t end;
  int32_t argument;  // position among the task's arguments
  int32_t writes;    // whether the task may write it
};

struct Kernel {
  int32_t id;
  int32_t reserved;
  void (*entry)(int64_t* args);
  void (*begin)(const Span* spans, int32_t count);  // before each entry, on the same thread; the spans outlive the task
  int32_t (*op)();         // the last PYPTO_OP of the calling thread's task, -1 before the first
  const char* (*error)();  // takes the calling thread's error, nullptr when there is none
  const char* name;
};

struct RunRequest {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t argument_count;
  uint32_t kernel_count;
  const Argument* arguments;
  const Kernel* kernels;
  uint32_t threads;  // upper limit of worker threads; 0 lets the runtime choose
  uint32_t flags;
  int32_t report_fd;  // checked mode: where a CrashReport is written; -1 for nowhere
  int32_t trace_fd;   // timed and traced runs: where the trace is written; -1 for nowhere
  // With kRing; 0 for the default.
  uint32_t ring_task_window;  // tasks at once
  uint32_t ring_dep_pool;     // dependencies at once
  uint64_t ring_heap;         // bytes of workspaces at once
};

struct RunResult {
  uint32_t struct_size;
  int32_t status;     // Status
  int32_t task;       // submission index, -1 when no task is to blame
  int32_t kernel_id;  // -1 likewise
  int32_t line;       // line of the submission, relative to the entry function; 0 when unknown
  int32_t op;         // index into the kernel's `ops`, -1 when unknown
  char message[kMessageSize];
};

// What a crashing run in checked mode writes to report_fd.
struct CrashReport {
  uint32_t struct_size;
  int32_t signal;
  int32_t task;
  int32_t kernel_id;
  int32_t line;
  int32_t op;
  int32_t buffer;       // argument index; workspaces follow the arguments; -1 when the address is near none
  uint32_t reserved;
  int64_t offset;       // faulting address relative to the first byte of the buffer
  int64_t buffer_size;  // bytes
};

// What a timed or traced run writes to trace_fd, followed by its tasks and edges. Times are nanoseconds of CLOCK_MONOTONIC.
struct TraceHeader {
  uint32_t struct_size;
  uint32_t task_count;
  uint32_t edge_count;
  uint32_t reserved;
  int64_t begin;
  int64_t submitted;  // when the last task was submitted
  int64_t end;
};

struct TraceTask {
  int32_t task;  // submission index
  int32_t kernel_id;
  int32_t line;
  int32_t worker;  // thread that ran it; 0 is the one that called
  int64_t begin;
  int64_t end;
};

// Task `target` had to wait for task `source`.
struct TraceEdge {
  int32_t source;
  int32_t target;
};

}  // namespace pypto::abi
