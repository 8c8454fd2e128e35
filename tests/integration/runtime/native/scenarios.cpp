// One orchestration for the tests: parameter 0 chooses what it does.
#include "pypto/orchestration.h"

using pypto::DType;
using pypto::Tensor;

enum Function { kAdd = 0, kMeet = 1, kFault = 2, kCopy = 3 };

static void orchestrate(pypto::Orchestrator& o) {
  const int64_t scenario = o.scalar<int64_t>(0);
  const Tensor in = o.tensor(1), state = o.tensor(2), out = o.tensor(3);
  const int64_t rows = in.dim(0), columns = in.dim(1);
  // out[...] = in[...] + value, element by element
  const auto add = [&](const Tensor& from, const Tensor& to, float value, int32_t line) {
    o.submit(kAdd).in(from).out(to).i64(from.dim(0)).i64(from.dim(1)).i64(from.stride(0)).i64(to.stride(0)).f32(value).at(line);
  };
  if (scenario < 100) {  // faults of one task, between two good ones
    add(in, out, 1.0f, 3);
    const Tensor workspace = o.create(DType::FP32, {3, 5});
    o.submit(kFault).in(in).inout(state).inout(workspace).i64(scenario).i64(state.dim(0) * state.dim(1)).f32(2.5f).at(4);
    o.submit(kAdd).in(state).out(out).i64(rows).i64(columns).i64(columns).i64(columns).f32(0.0f).at(5);
    return;
  }
  switch (scenario) {
    case 100:  // read after write, write after read, write after write, through workspaces
    {
      const Tensor a = o.create(DType::FP32, {rows, columns}), b = o.create(DType::FP32, {rows, columns});
      add(in, a, 1, 1);
      add(a, b, 2, 2);
      add(in, a, 10, 3);
      add(b, out, 4, 4);
      add(a, state, 100, 5);
      return;
    }
    case 101:  // two independent tasks that wait for each other
      o.submit(kMeet).out(out.view({0, 0}, {1, columns})).i64(columns).i64(2);
      o.submit(kMeet).out(out.view({1, 0}, {1, columns})).i64(columns).i64(2);
      return;
    case 102:  // the same with interleaved columns, which share an address range but no element
      o.submit(kMeet).out(out.view({0, 0}, {rows, 1})).i64(1).i64(2);
      o.submit(kMeet).out(out.view({0, 1}, {rows, 1})).i64(1).i64(2);
      return;
    case 103:  // views of views
    {
      const Tensor middle = in.view({1, 1}, {rows - 1, columns - 1}).view({1, 1}, {1, columns - 2});
      add(middle, out.view({rows - 1, 0}, {1, columns - 2}), 0, 1);
      return;
    }
    case 104: o.fail("sequence is too long");
    case 105: (void)in.view({0, 1}, {rows, columns}); return;
    case 106: o.submit(99).in(in); return;
    case 107: o.create(DType::FP32, {1 << 16, 1 << 15}); return;
    case 108: o.create(DType::FP32, {-1}); return;
    case 109: (void)o.scalar<int8_t>(4); return;
    case 110: (void)o.tensor(0); return;
    case 111: (void)o.scalar<int64_t>(1); return;
    case 112: (void)in.dim(2); return;
    case 113: return;  // nothing at all
    case 140:  // a loop whose bound is far too large
      for (int64_t i = 0; i < INT64_MAX; ++i) add(in, out, 1, 1);
      return;
    case 114: *static_cast<volatile float*>(nullptr) = 1; return;
    case 115: (void)Tensor(in).view({0}, {1}); return;
    case 116: throw 7;
    case 117: o.require(rows == 0, "rows must be zero"); return;
    case 118: o.submit(kAdd).in(in.view({-1, 0}, {1, 1})); return;
    case 119: o.submit(kAdd).in(Tensor()); return;
    case 120:  // several failures: the first in submission order is reported
      for (int i = 0; i < 8; ++i) o.submit(kFault).in(in).in(in).in(in).i64(2).i64(0).f32(0).at(10 + i);
      return;
    case 121:  // a failed task's successors do not run
      o.submit(kFault).in(in).inout(state).in(in).i64(2).i64(0).f32(0).at(7);
      o.submit(kAdd).in(state).out(out).i64(rows).i64(columns).i64(columns).i64(columns).f32(50).at(8);
      return;
    case 122:  // an unwritten workspace
      o.submit(kCopy).in(o.create(DType::FP32, {rows, columns})).out(out).i64(rows * columns);
      return;
    case 123:  // a task that waits for the one of another run
      o.submit(kMeet).out(out).i64(columns).i64(2);
      return;
    default: o.fail("no such scenario");
  }
}

PYPTO_ORCHESTRATION(orchestrate, 5)
