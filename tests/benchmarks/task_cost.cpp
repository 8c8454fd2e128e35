// What a task costs beside its kernel: submission, dependencies, dispatch. The kernel does nothing.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "pypto/orchestration.h"

namespace {

using namespace pypto;

enum Shape { kRows, kChain, kWorkspaces };

Shape shape;
int count;

// Rows: independent tasks, a row each. Chain: all write the whole tensor. Workspaces: pairs of a writer and a reader.
void orchestrate(Orchestrator& o) {
  const Tensor a = o.tensor(0), b = o.tensor(1);
  for (int i = 0; i < count; ++i) {
    const Tensor row = b.view({i % 1024, 0}, {1, 64});
    if (shape == kRows) o.submit(0).in(a.view({0, 0}, {16, 16})).out(row).i64(i).at(3);
    if (shape == kChain) o.submit(0).in(a).inout(b).i64(i).at(3);
    if (shape == kWorkspaces) {
      const Tensor between = o.create(DType::FP32, {16, 64});
      o.submit(0).in(a).out(between).i64(i).at(3);
      o.submit(0).in(between).out(row).at(4);
      ++i;
    }
  }
}

}  // namespace

PYPTO_EXPORT int task_cost(int repetitions) {
  static float memory[2][1024 * 64];
  abi::Argument arguments[2]{};
  for (int i = 0; i < 2; ++i) {
    arguments[i] = {.kind = abi::kTensor, .dtype = 1, .direction = i == 0 ? abi::kIn : abi::kOut, .rank = 2};
    arguments[i].data = memory[i];
    arguments[i].shape[0] = 1024;
    arguments[i].shape[1] = arguments[i].strides[0] = 64;
    arguments[i].strides[1] = 1;
    arguments[i].name = i == 0 ? "a" : "b";
  }
  abi::Kernel kernel{};
  kernel.entry = [](int64_t*) {};
  kernel.begin = [](const abi::Span*, int32_t) {};
  kernel.op = [] { return int32_t{-1}; };
  kernel.error = []() -> const char* { return nullptr; };
  kernel.name = "nothing";
  abi::RunRequest request{};
  request.struct_size = sizeof(request);
  request.abi_version = PYPTO_RUNTIME_ABI;
  request.argument_count = 2;
  request.kernel_count = 1;
  request.arguments = arguments;
  request.kernels = &kernel;
  request.report_fd = request.trace_fd = -1;
  abi::RunResult result{};
  result.struct_size = sizeof(result);
  for (const bool ring : {false, true}) {
    request.flags = ring ? abi::kRing : 0;
    for (const Shape each : {kRows, kChain, kWorkspaces}) {
      for (const int tasks : {1, 2, 10, 100, 1000, 4000}) {
        if (each == kWorkspaces && tasks == 1) continue;
        shape = each;
        count = tasks;
        double best = 1e18;
        for (int i = 0; i < repetitions; ++i) {
          const auto start = std::chrono::steady_clock::now();
          if (detail::run(orchestrate, 2, request, result) != abi::kOk) return std::puts(result.message), 1;
          const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
          best = std::min(best, took.count());
        }
        const char* names[] = {"independent rows", "one after the other", "through workspaces"};
        std::printf("%-26s  %-20s %6d %12.2f %10.3f\n", ring ? "tensormap_and_ringbuffer" : "host_build_graph",
                    names[each], tasks, best, best / tasks);
      }
    }
  }
  return 0;
}
