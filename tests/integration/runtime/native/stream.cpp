// One orchestration for the tests of both runtimes: parameter 0 chooses what it does, parameter 4 how often.
#include "pypto/orchestration.h"

using pypto::DType;
using pypto::Tensor;

enum Function { kAdd = 0, kMeet = 1, kFault = 2 };

static void orchestrate(pypto::Orchestrator& o) {
  const int64_t scenario = o.scalar<int64_t>(0), turns = o.scalar<int64_t>(4);
  const Tensor x = o.tensor(1), state = o.tensor(2), out = o.tensor(3);
  const int64_t rows = x.dim(0), columns = x.dim(1);
  const auto add = [&](const Tensor& from, const Tensor& to, float value) {
    o.submit(kAdd).in(from).out(to).i64(rows).i64(columns).i64(from.stride(0)).i64(to.stride(0)).f32(value);
  };
  switch (scenario) {
    case 0:  // each turn has a workspace of its own
      for (int64_t i = 0; i < turns; ++i) {
        const Tensor work = o.create(DType::FP32, {rows, columns});
        add(state, work, 1);
        add(work, state, 0);
      }
      return;
    case 1:  // workspaces that are all used again at the end
    {
      std::vector<Tensor> kept;
      for (int64_t i = 0; i < turns; ++i) {
        kept.push_back(o.create(DType::FP32, {rows, columns}));
        add(x, kept.back(), static_cast<float>(i));
      }
      for (const Tensor& work : kept) add(work, out, 0);
      return;
    }
    case 2:  // the same, but each is let go of before the next one
    {
      Tensor work = o.create(DType::FP32, {rows, columns});
      for (int64_t i = 0; i < turns; ++i) {
        add(x, work, static_cast<float>(i));
        add(work, out, 0);
        work.release();
        work = o.create(DType::FP32, {rows, columns});
      }
      return;
    }
    case 3:  // writers of the same memory that nobody orders wait for each other
      o.submit(kMeet).out(out.untracked()).i64(columns).i64(2);
      o.submit(kMeet).out(out.untracked()).i64(columns).i64(2);
      return;
    case 4:  // only the program orders these: two groups, the tasks of one in order, the second group after the first
    {
      o.enter({}, pypto::Orchestrator::Order::serial);
      for (int64_t i = 0; i < turns; ++i) add(out.untracked(), out.untracked(), 1);
      o.enter({o.leave()});
      add(out.untracked(), state.untracked(), 1);
      o.leave();
      return;
    }
    case 5:  // a failing task, and then far more tasks than fit in a window
      add(x, out, 1);
      o.submit(kFault).in(x).inout(state).in(x).i64(2).i64(0).f32(0).at(7);
      for (int64_t i = 0; i < turns; ++i) add(state, out, 50);
      return;
    case 6:  // an error of the orchestration after tasks were submitted
      add(x, out, 1);
      if (turns == 1) o.submit(kFault).in(x).inout(state).in(x).i64(2).i64(0).f32(0).at(7);
      o.fail("the program gives up");
    case 7:  // every task but the last reads what one task wrote; the last one waits for all of them
      add(x, out, 1);
      for (int64_t i = 0; i < turns; ++i) {
        const Tensor work = o.create(DType::FP32, {rows, columns});
        add(out, work, 1);
      }
      add(x, out, 2);
      return;
    case 8:  // the first word of `state` is written by a task: 1.0 or 0.0 as a float, compared as a whole number
    {
      add(state, state, static_cast<float>(turns));
      const Tensor word(state.data(), DType::INT32, 1, {1}, {1}, state.root());
      o.enter({});
      o.when(word, pypto::Comparison::gt, 0);
      add(x, out, 1);
      o.leave();
      return;
    }
    case 9:  // blocks that write the same tensor meet; whoever reads it waits for all of them
    {
      o.enter({}, pypto::Orchestrator::Order::blocks);
      for (int64_t i = 0; i < turns; ++i) {
        o.block();
        o.submit(kMeet).out(out).i64(columns).i64(2);
      }
      o.leave();
      add(out, state, 1);
      return;
    }
    case 10:  // blocks that only add to the same tensor; here each adds 1 to it as a whole
      o.enter({}, pypto::Orchestrator::Order::blocks);
      for (int64_t i = 0; i < turns; ++i) {
        o.block();
        o.submit(kAdd).add(out).add(out).i64(rows).i64(columns).i64(columns).i64(columns).f32(1);
      }
      o.leave();
      return;
    case 11:  // goes on until a task has written what it waits for; then a failing task, if told to
    {
      int64_t rounds = 0;
      while (o.element<float>(state, {1, 2}) < static_cast<float>(turns)) {
        add(state, state, 1);
        ++rounds;
      }
      o.require(rounds == turns, "rounds");
      if (turns == 3) o.submit(kFault).in(x).inout(state).in(x).i64(2).i64(0).f32(0).at(7);
      (void)o.element<float>(state, {0, 0});
      add(state, out, 1);
      return;
    }
    default: o.fail("no such scenario");
  }
}

PYPTO_ORCHESTRATION(orchestrate, 5)
