#include "pypto/orchestration.h"

// One independent task for each block of 400 rows.
static void orchestrate(pypto::Orchestrator& o) {
  const pypto::Tensor x = o.tensor(0), out = o.tensor(1);
  for (int64_t row = 0; row < x.dim(0); row += 400) o.submit(0).in(x.view({row, 0}, {400, 128})).out(out.view({row, 0}, {400, 128}));
}

PYPTO_ORCHESTRATION(orchestrate, 2)
