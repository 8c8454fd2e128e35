#include "pypto/orchestration.h"

static void orchestrate(pypto::Orchestrator& o) {
  auto task = o.submit(0);
  task.in(o.tensor(0)).out(o.tensor(1));
  for (int i = 2; i < 6; ++i) task.i64(o.scalar<int32_t>(i));
}

PYPTO_ORCHESTRATION(orchestrate, 6)
