"""Runs a kernel of a bundle on the simulator and compares it with a golden function: ``kernel_test PLAN``.

The plan is the JSON that `pypto_kernel_test` writes; its paths are relative to the folder of runfiles.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from pypto.bundle.description import ParameterSummary
    from pypto.bundle.reading import Bundle

# Of the largest number of a result: rounding of operands, of intermediate results and of the order of sums.
TOLERANCES = {"FP32": 2.0**-18, "FP16": 2.0**-9, "BF16": 2.0**-6}
_NUMPY_NAMES = {"FP16": "float16", "FP32": "float32", "FP64": "float64", "BOOL": "bool"}


class TestFailed(Exception):
    """What the user has to know, without a traceback."""


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy type of a data type of the language."""
    import numpy as np

    if name == "BF16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(_NUMPY_NAMES.get(name, name.lower()))


def shape_of(parameter: ParameterSummary, dimensions: Mapping[str, str]) -> tuple[int, ...]:
    """A tensor's shape with every dynamic dimension given its size."""
    for length in parameter.shape:
        if isinstance(length, str) and length not in dimensions:
            raise TestFailed(
                f'{parameter} has the dynamic dimension {length}: give its size, dimensions = {{"{length}": "128"}}'
            )
    return tuple(int(dimensions[length]) if isinstance(length, str) else length for length in parameter.shape)


def tensor_of(parameter: ParameterSummary, shape: tuple[int, ...], numbers: np.random.Generator) -> np.ndarray:
    """Random content for what a kernel reads, NaN (or the smallest integer) for what it must write."""
    import numpy as np

    dtype = numpy_dtype(parameter.dtype)
    if parameter.direction == "out":
        filling = np.nan if dtype.kind not in "biu" else False if dtype.kind == "b" else np.iinfo(dtype).min
        return np.full(shape, filling, dtype)
    if dtype.kind == "b":
        return numbers.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return numbers.integers(0 if dtype.kind == "u" else -100, 100, shape).astype(dtype)
    return numbers.standard_normal(shape).astype(dtype)


def made_inputs(
    golden: ModuleType, parameters: Sequence[ParameterSummary], plan: Mapping[str, Any], numbers: np.random.Generator
) -> dict[str, np.ndarray]:
    """Tensors that the golden file makes itself, since random ones would not be valid."""
    import numpy as np

    if not plan["inputs"]:
        return {}
    shapes = {p.name: shape_of(p, plan["dimensions"]) for p in parameters if p.kind == "tensor"}
    made = function_of(golden, plan["inputs"], "inputs")(numbers, shapes)
    readable = {p.name: p for p in parameters if p.kind == "tensor" and p.direction != "out"}
    for name, value in made.items():
        if name not in readable:
            raise TestFailed(
                f"{plan['inputs']} makes {name!r}, which the kernel does not read; it reads: {', '.join(readable)}"
            )
        wanted = numpy_dtype(readable[name].dtype)
        if not isinstance(value, np.ndarray) or value.shape != shapes[name] or value.dtype != wanted:
            raise TestFailed(f"{plan['inputs']} must make {name} as an array {shapes[name]} of {wanted}")
    return dict(made)


def arguments_of(
    parameters: Sequence[ParameterSummary], plan: Mapping[str, Any], golden: ModuleType
) -> list[np.ndarray | int | float | bool]:
    """The arguments of one call, in the kernel's order."""
    import numpy as np

    known = {parameter.name for parameter in parameters if parameter.kind == "scalar"}
    for name in plan["arguments"]:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise TestFailed(f"arguments names {name!r}, which is no scalar parameter; those are: {listed}")
    numbers = np.random.default_rng(plan["seed"])
    made = made_inputs(golden, parameters, plan, numbers)
    values: list[np.ndarray | int | float | bool] = []
    for parameter in parameters:
        if parameter.name in made:
            values.append(np.ascontiguousarray(made[parameter.name]))
            continue
        if parameter.kind == "tensor":
            values.append(tensor_of(parameter, shape_of(parameter, plan["dimensions"]), numbers))
            continue
        if parameter.name not in plan["arguments"]:
            raise TestFailed(f'{parameter} is a scalar: give its value, arguments = {{"{parameter.name}": "1"}}')
        text = plan["arguments"][parameter.name]
        values.append(float(text) if parameter.dtype.startswith(("FP", "BF")) else int(text))
    return values


def golden_module(path: Path) -> ModuleType:
    """The golden file, imported."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def function_of(module: ModuleType, name: str, attribute: str) -> Callable[..., Any]:
    """A function of the golden file, which an attribute of the rule names."""
    found = getattr(module, name, None)
    if not callable(found):
        raise TestFailed(f"{module.__name__}.py has no function {name!r}; name it by the attribute `{attribute}`")
    return found  # type: ignore[no-any-return]


def tolerance_of(parameters: Sequence[ParameterSummary], plan: Mapping[str, Any]) -> float:
    """The largest error allowed, relative to the largest number of the result."""
    if plan["tolerance"]:
        return float(plan["tolerance"])
    return max((TOLERANCES.get(p.dtype, 0.0) for p in parameters if p.kind == "tensor"), default=0.0)


def compare(name: str, got: np.ndarray, wanted: Any, tolerance: float) -> str:
    """One line about a result; raises `TestFailed` when it is wrong."""
    import numpy as np

    expected = np.asarray(wanted)
    if got.shape != expected.shape:
        raise TestFailed(f"{name}: the golden function returns the shape {expected.shape}, the kernel {got.shape}")
    if got.dtype.kind in "biu":
        wrong = int((got != expected).sum())
        if wrong:
            raise TestFailed(f"{name}: {wrong} of {got.size} numbers differ")
        return f"{name}: equal"
    exact = expected.astype(np.float64)
    error = np.abs(got.astype(np.float64) - exact)
    limit = tolerance * max(1.0, float(np.abs(exact).max(initial=0.0)))
    largest = math.inf if np.isnan(error).any() else float(error.max(initial=0.0))
    if not largest <= limit:
        at = np.unravel_index(int(np.argmax(np.where(np.isnan(error), math.inf, error))), got.shape)
        raise TestFailed(
            f"{name}: the error is {largest:.3g}, allowed is {limit:.3g}; the worst is at "
            f"{[int(index) for index in at]}: the kernel gives {float(got[at]):.9g}, golden is {float(exact[at]):.9g}"
        )
    return f"{name}: largest error {largest:.3g}, allowed {limit:.3g}"


def run(bundle: Bundle, plan: Mapping[str, Any], module: ModuleType) -> None:
    """Run every specialization that the bundle has of the entry."""
    import numpy as np

    from pypto.runtime.config import RunConfig
    from pypto.runtime.distributed.config import DistributedConfig
    from pypto.runtime.distributed.program import DistributedProgram

    target = bundle.description.target
    golden = function_of(module, plan["function"], "function")
    kernel = bundle.load(plan["entry"])
    for entry in bundle.entries:
        if entry.name != plan["entry"]:
            continue
        parameters = entry.description.params
        values = arguments_of(parameters, plan, module)
        read = [
            value.copy() if isinstance(value, np.ndarray) else value
            for parameter, value in zip(parameters, values, strict=True)
            if parameter.direction != "out"
        ]
        program = kernel.programs[entry.key.digest]
        talks = isinstance(program, DistributedProgram) and program.host.cores_talk
        config = RunConfig(
            backend_type=target.backend_type,
            execution_mode=target.execution_mode,
            # A checked run has a copy of the memory, which no other rank reaches.
            sim_checks=not talks,
            distributed_config=DistributedConfig(range(plan["ranks"])) if plan["ranks"] else None,
        )
        program(*values, config=config)
        results = [(p.name, value) for p, value in zip(parameters, values, strict=True) if p.direction != "in"]
        returned = golden(*read, **{name: float(text) for name, text in plan["golden_arguments"].items()})
        expected = returned if isinstance(returned, tuple) else (returned,)
        if len(expected) != len(results):
            raise TestFailed(
                f"the golden function returns {len(expected)} arrays, the kernel writes {len(results)}: "
                f"{', '.join(name for name, _ in results)}"
            )
        print(f"{target.backend_type} {entry.description.signature}")
        tolerance = tolerance_of(parameters, plan)
        for (name, got), wanted in zip(results, expected, strict=True):
            assert isinstance(got, np.ndarray)
            print(f"  {compare(name, got, wanted, tolerance)}")


def main() -> int:
    runfiles = Path(os.environ["RUNFILES_DIR"])
    plan = json.loads(Path(sys.argv[1]).read_bytes())
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    places = [runfiles / repository / f"cp{python.replace('.', '')}" for repository in plan["wheels"]]
    wheels = next((place for place in places if place.is_dir()), None)
    if wheels is None:
        raise TestFailed(
            f"this test runs with Python {python} ({sys.executable}), for which no NumPy was fetched: "
            f"build with --@pypto//rules:kernel_test_python={python}, or with =all (3.11 to 3.13)"
        )
    sys.path[1:1] = [str(wheels), *(str(runfiles / folder) for folder in plan["imports"])]

    from pypto.bundle.reading import open_bundle

    golden = golden_module(runfiles / plan["golden"])
    for path in plan["bundles"]:
        run(open_bundle(runfiles / path), plan, golden)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TestFailed as failure:
        sys.exit(f"FAILED: {failure}")
