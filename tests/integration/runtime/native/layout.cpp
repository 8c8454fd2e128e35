// Describes every structure of the C interface, one line each: size, then offset and size of its fields.
#include <cstddef>
#include <cstdio>

#include "pypto/abi.h"

#define FIELD(type, name) print(" %s=%zu:%zu", #name, offsetof(pypto::abi::type, name), sizeof(pypto::abi::type::name))
#define BEGIN(type) print("%s %zu", #type, sizeof(pypto::abi::type))
#define END() print("%s", "\n")

PYPTO_EXPORT void describe_layout(char* text, size_t size) {
  const auto print = [&](const char* format, auto... values) {
    const int written = std::snprintf(text, size, format, values...);
    text += written;
    size -= static_cast<size_t>(written);
  };
  BEGIN(Argument);
  FIELD(Argument, kind); FIELD(Argument, dtype); FIELD(Argument, direction); FIELD(Argument, rank);
  FIELD(Argument, data); FIELD(Argument, scalar); FIELD(Argument, shape); FIELD(Argument, strides); FIELD(Argument, name);
  END();
  BEGIN(Kernel);
  FIELD(Kernel, id); FIELD(Kernel, reserved); FIELD(Kernel, entry); FIELD(Kernel, begin); FIELD(Kernel, op); FIELD(Kernel, error);
  FIELD(Kernel, name);
  END();
  BEGIN(RunRequest);
  FIELD(RunRequest, struct_size); FIELD(RunRequest, abi_version); FIELD(RunRequest, argument_count);
  FIELD(RunRequest, kernel_count); FIELD(RunRequest, arguments); FIELD(RunRequest, kernels); FIELD(RunRequest, threads);
  FIELD(RunRequest, flags); FIELD(RunRequest, report_fd); FIELD(RunRequest, trace_fd);
  FIELD(RunRequest, ring_task_window); FIELD(RunRequest, ring_dep_pool); FIELD(RunRequest, ring_heap);
  END();
  BEGIN(RunResult);
  FIELD(RunResult, struct_size); FIELD(RunResult, status); FIELD(RunResult, task); FIELD(RunResult, kernel_id);
  FIELD(RunResult, line); FIELD(RunResult, op); FIELD(RunResult, message);
  END();
  BEGIN(CrashReport);
  FIELD(CrashReport, struct_size); FIELD(CrashReport, signal); FIELD(CrashReport, task); FIELD(CrashReport, kernel_id);
  FIELD(CrashReport, line); FIELD(CrashReport, op); FIELD(CrashReport, buffer); FIELD(CrashReport, reserved);
  FIELD(CrashReport, offset); FIELD(CrashReport, buffer_size);
  END();
  BEGIN(TraceHeader);
  FIELD(TraceHeader, struct_size); FIELD(TraceHeader, task_count); FIELD(TraceHeader, edge_count);
  FIELD(TraceHeader, reserved); FIELD(TraceHeader, begin); FIELD(TraceHeader, submitted); FIELD(TraceHeader, end);
  END();
  BEGIN(TraceTask);
  FIELD(TraceTask, task); FIELD(TraceTask, kernel_id); FIELD(TraceTask, line); FIELD(TraceTask, worker);
  FIELD(TraceTask, begin); FIELD(TraceTask, end);
  END();
  BEGIN(TraceEdge);
  FIELD(TraceEdge, source); FIELD(TraceEdge, target);
  END();
  print("constants kMaxRank=%d PYPTO_RUNTIME_ABI=%d kMessageSize=%d kChecked=%d kTimed=%d kTraced=%d kRing=%d\n",
        pypto::abi::kMaxRank, PYPTO_RUNTIME_ABI, pypto::abi::kMessageSize, static_cast<int>(pypto::abi::kChecked),
        static_cast<int>(pypto::abi::kTimed), static_cast<int>(pypto::abi::kTraced),
        static_cast<int>(pypto::abi::kRing));
}
