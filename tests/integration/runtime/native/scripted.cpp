// A task graph that the caller writes down: per task an operation and three boxes [row, column, rows, columns] of the
// same table: two that it reads, one that it writes.
#include "pypto/orchestration.h"

static void orchestrate(pypto::Orchestrator& o) {
  const pypto::Tensor script = o.tensor(0), table = o.tensor(1);
  const int64_t* word = static_cast<const int64_t*>(script.data());
  for (int64_t task = 0; task < script.dim(0); ++task, word += script.dim(1)) {
    const auto box = [&](int index) {
      const int64_t* b = word + 1 + 4 * index;
      return table.view({b[0], b[1]}, {b[2], b[3]});
    };
    const pypto::Tensor a = box(0), b = box(1), out = box(2);
    pypto::TaskBuilder builder = o.submit(0);
    builder.in(a).in(b);
    word[0] % 2 != 0 ? builder.inout(out) : builder.out(out);
    for (const pypto::Tensor* t : {&a, &b, &out}) builder.i64(t->dim(0)).i64(t->dim(1));
    builder.i64(table.stride(0)).i64(word[0]);
  }
}

PYPTO_ORCHESTRATION(orchestrate, 2)
