"""The stub of a kernel in C++."""

import pypto.language as pl


@pl.jit.extern(core_type="aiv", source="cpp/step_add.cpp", include_dirs=["inc"])
def step_add(x: pl.Tensor[[16, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]): ...
