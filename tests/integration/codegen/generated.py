"""Functions of the IR as callables: generated, assembled by the real ptoas, compiled in one piece per core type."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from pypto.build.assemble import assemble_kernel
from pypto.codegen.incore import Kernel, print_kernel
from pypto.codegen.rewrites import prepared
from pypto.codegen.wrapper import print_wrapper
from pypto.ir.builder import Builder, function
from pypto.ir.nodes import CoreType, Direction, Function, FunctionKind, Value
from pypto.ir.types import BF16, FP16, FP32, INT8, INT16, INT32, DType, ScalarType, TensorType
from pypto.toolchain import Toolchain
from pypto.toolchain.tools import Command, gcc_compile_incore, private_root

NUMPY: dict[DType, Any] = {
    FP32: np.float32,
    FP16: np.float16,
    BF16: ml_dtypes.bfloat16,
    INT32: np.int32,
    INT16: np.int16,
    INT8: np.int8,
}
# Relative to the larger of 1 and the exact value: a few roundings of the element type.
TOLERANCE: dict[DType, float] = {FP32: 5e-6, FP16: 4e-3, BF16: 2e-2, INT32: 0, INT16: 0, INT8: 0}
UNTOUCHED = 77

Shape = tuple[int, ...]
Body = Callable[[Builder, list[Value], list[Value], list[Value]], None]


@dataclass
class Case:
    """One kernel and what it has to compute.

    Attributes:
        inputs: shape and element type of each input tensor.
        outputs: the same of each output, by name.
        body: builds the kernel from builder, input tensors, numbers and output tensors.
        expected: exact outputs, in order, from the inputs in float64 and the numbers.
        numbers: scalar arguments.
        tolerance: instead of that of the element type.
        sample: makes input data of a shape; default normally distributed, or small whole numbers.
    """

    name: str
    inputs: Sequence[tuple[Shape, DType]]
    outputs: Mapping[str, tuple[Shape, DType]]
    body: Body
    expected: Callable[..., Sequence[np.ndarray]]
    core: CoreType = CoreType.AIV
    numbers: Sequence[tuple[DType, float]] = ()
    tolerance: float | None = None
    sample: Callable[[np.random.Generator, Shape], np.ndarray] | None = None
    runs: Sequence[Sequence[float]] = field(default_factory=list)

    def function(self) -> Function:
        """The incore function."""
        made, builder = function(
            self.name,
            FunctionKind.INCORE,
            [
                *((f"x{i}", TensorType(shape, dtype)) for i, (shape, dtype) in enumerate(self.inputs)),
                *((f"n{i}", ScalarType(dtype)) for i, (dtype, _) in enumerate(self.numbers)),
                *((name, TensorType(shape, dtype), Direction.Out) for name, (shape, dtype) in self.outputs.items()),
            ],
        )
        made.core = self.core
        values = [p.value for p in made.params]
        first, last = len(self.inputs), len(values) - len(self.outputs)
        self.body(builder, values[:first], values[first:last], values[last:])
        builder.op("scf.return")
        return made


class Library:
    """Compiled kernels; call one by its name with a slot or array per task argument."""

    def __init__(self, libraries: Mapping[str, ctypes.CDLL], kernels: Mapping[str, tuple[str, Kernel]]) -> None:
        self._libraries = libraries
        self.kernels = kernels

    def run(self, name: str, arguments: Sequence[Any]) -> str | None:
        """Run a kernel; the text of the check that failed, if one did."""
        slots = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                slots.append(argument.ctypes.data)
            elif isinstance(argument, float):
                slots.append(int(np.float32(argument).view(np.uint32)))
            else:
                slots.append(int(argument))
        library = self._libraries[self.kernels[name][0]]
        everything = (ctypes.c_uint64 * 3)(0, 2**64 - 1, 1 << 32)
        library.pypto_kernel_begin(everything, 1)
        entry = getattr(library, f"entry_{name}")
        entry.restype = None
        entry((ctypes.c_int64 * len(slots))(*slots))
        error = library.pypto_kernel_error
        error.restype = ctypes.c_char_p
        text = error()
        return text.decode() if text else None


def compile_all(functions: Sequence[Function], toolchain: Toolchain, folder: Path) -> Library:
    """Compile kernels, in one translation unit per core type and kind of 16-bit float."""
    kernels: dict[str, tuple[str, Kernel]] = {}
    sources: dict[str, list[str]] = {}
    with private_root(toolchain, parent=folder) as root:
        (root.work / "ptoas").mkdir()

        def assemble(function: Function) -> tuple[Function, Kernel, bytes]:
            kernel = print_kernel(function)
            entry = {"name": function.name, "repairs": kernel.repairs}
            return function, kernel, assemble_kernel(kernel.pto.encode(), entry, toolchain)

        with ThreadPoolExecutor(2) as pool:
            for function_, kernel, cpp in pool.map(assemble, map(prepared, functions)):
                core = function_.core or CoreType.AIV
                unit = core.value + ("_bf16" if kernel.repairs["bfloat16"] else "")
                kernels[function_.name] = unit, kernel
                (root.work / f"ptoas/{function_.name}.cpp").write_bytes(cpp)
                wrapper = print_wrapper(function_, kernel)
                sources.setdefault(unit, []).append(
                    wrapper.replace("void kernel_entry(", f"void entry_{function_.name}(")
                )

        def compile_unit(unit: str) -> tuple[str, ctypes.CDLL]:
            (root.work / f"{unit}.cpp").write_text("\n".join(sources[unit]))
            command = gcc_compile_incore(
                toolchain,
                f"w/{unit}.cpp",
                f"w/{unit}.so",
                core="aic" if unit.startswith("aic") else "aiv",
                includes=("w",),
                bfloat16=unit.endswith("_bf16"),
            )
            # One unit holds dozens of kernels; optimised as a product's single kernel is, it would take a minute.
            argv = tuple("-O0" if part == "-O2" else part for part in command.argv)
            root.run(Command(argv, command.env), f"compile {unit}")
            target = folder / f"{unit}.so"
            target.write_bytes((root.work / f"{unit}.so").read_bytes())
            return unit, ctypes.CDLL(str(target))

        with ThreadPoolExecutor(2) as pool:
            libraries = dict(pool.map(compile_unit, sorted(sources)))
    return Library(libraries, kernels)


def check(case: Case, library: Library) -> None:
    """Run a case and compare every output with the exact one."""
    for numbers in case.runs or [[value for _, value in case.numbers]]:
        rng = np.random.default_rng(7)
        inputs = []
        for shape, dtype in case.inputs:
            if case.sample is not None:
                data = case.sample(rng, shape)
            elif dtype.is_float:
                data = rng.standard_normal(shape)
            else:
                data = rng.integers(-9, 10, shape)
            inputs.append(data.astype(NUMPY[dtype]))
        outputs = [np.full(shape, UNTOUCHED, NUMPY[dtype]) for shape, dtype in case.outputs.values()]
        given = [float(n) if dtype.is_float else int(n) for (dtype, _), n in zip(case.numbers, numbers, strict=True)]
        assert library.run(case.name, [*inputs, *given, *outputs]) is None
        expected = case.expected(*(x.astype(np.float64) for x in inputs), *given)
        assert len(expected) == len(outputs)
        for (name, (_, dtype)), got, exact in zip(case.outputs.items(), outputs, expected, strict=True):
            limit = TOLERANCE[dtype] if case.tolerance is None else case.tolerance
            close(got, np.broadcast_to(exact, got.shape), limit, f"{case.name}{numbers}: {name}")


def close(got: np.ndarray, exact: np.ndarray, limit: float, what: str) -> None:
    """Infinite values equal, all others near."""
    got = got.astype(np.float64)
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(got[~finite], exact[~finite], what)
    error = np.abs(got[finite] - exact[finite]) / np.maximum(1, np.abs(exact[finite]))
    assert error.max(initial=0) <= limit, f"{what}: error {error.max()}"
