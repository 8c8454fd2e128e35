// Writes every scalar parameter, as it arrives in a kernel, into a table of numbers.
#include "pypto/orchestration.h"

static void orchestrate(pypto::Orchestrator& o) {
  o.submit(0)
      .out(o.tensor(12))
      .i64(o.scalar<int8_t>(0))
      .i64(o.scalar<int16_t>(1))
      .i64(o.scalar<int32_t>(2))
      .i64(o.scalar<int64_t>(3))
      .i64(o.scalar<uint8_t>(4))
      .i64(o.scalar<uint16_t>(5))
      .i64(o.scalar<uint32_t>(6))
      .i64(static_cast<int64_t>(o.scalar<uint64_t>(7)))
      .i64(o.scalar<bool>(8))
      .f32(o.scalar<float>(9))
      .f32(o.scalar<float>(10))
      .f64(o.scalar<double>(11));
}

PYPTO_ORCHESTRATION(orchestrate, 13)
