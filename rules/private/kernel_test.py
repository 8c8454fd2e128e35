"""Runs a kernel of a bundle on the simulator and compares it with a golden function: ``kernel_test PLAN``.

The plan is the JSON that `pypto_kernel_test` writes; its paths are relative to the folder of runfiles.
"""

from __future__ import annotations

import importlib.util
import inspect
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

    from pypto.bundle.description import EntryDescription, ParameterSummary
    from pypto.bundle.reading import Bundle

# Of the largest number of a result: rounding of operands, of intermediate results and of the order of sums.
TOLERANCES = {"FP32": 2.0**-18, "FP16": 2.0**-9, "BF16": 2.0**-6}
_NUMPY_NAMES = {"FP16": "float16", "FP32": "float32", "FP64": "float64", "BOOL": "bool"}


class TestFailed(Exception):
    """What the user has to know, without a traceback."""


def number_of(attribute: str, name: str, text: str, kind: type[int] | type[float]) -> int | float:
    """The number that an attribute of the rule gives."""
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        at = f" for {name}" if name else ""
        raise TestFailed(f"{attribute} gives {text!r}{at}, which is not {what}") from None


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy type of a data type of the language."""
    import numpy as np

    if name == "BF16":
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(_NUMPY_NAMES.get(name, name.lower()))


def shape_of(parameter: ParameterSummary, dimensions: Mapping[str, str]) -> tuple[int, ...]:
    """A tensor's shape with every dynamic dimension given its size."""
    for length in parameter.shape:
        if isinstance(length, str) and length not in dimensions:
            raise TestFailed(
                f'{parameter} has the dynamic dimension {length}: give its size, dimensions = {{"{length}": "128"}}'
            )
    shape = tuple(
        int(number_of("dimensions", length, dimensions[length], int)) if isinstance(length, str) else length
        for length in parameter.shape
    )
    if min(shape, default=0) < 0:
        raise TestFailed(
            f"{parameter} would have the shape {shape}; the attribute dimensions gives sizes of at least 0"
        )
    return shape


def check_dimensions(entries: Sequence[EntryDescription], dimensions: Mapping[str, str]) -> None:
    """Every size that is given is one of some specialization's dynamic dimension."""
    shapes = [length for entry in entries for parameter in entry.params for length in parameter.shape]
    known = sorted({length for length in shapes if isinstance(length, str)})
    for name in dimensions:
        if name not in known:
            raise TestFailed(
                f"dimensions names {name!r}, which is no dynamic dimension; those are: {', '.join(known) or 'none'}"
            )


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
    if not isinstance(made, dict):
        raise TestFailed(f"{plan['inputs']} must return a dict of arrays by name, it returns a {type(made).__name__}")
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
        values.append(scalar_of(parameter, plan["arguments"][parameter.name]))
    return values


def scalar_of(parameter: ParameterSummary, text: str) -> int | float | bool:
    """The value of a scalar parameter."""
    if parameter.dtype == "BOOL":
        if text not in ("True", "False", "1", "0"):
            raise TestFailed(f"arguments gives {text!r} for {parameter}, which is neither True nor False")
        return text in ("True", "1")
    kind = float if parameter.dtype.startswith(("FP", "BF")) else int
    return number_of("arguments", str(parameter), text, kind)


def golden_module(path: Path) -> ModuleType:
    """The golden file, imported."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise TestFailed(
            f"{path.name} needs the module {error.name!r}, which is in no target of deps "
            "(NumPy, ml_dtypes, pypto and the standard library need no mention)"
        ) from None
    except SyntaxError as error:
        raise TestFailed(f"{Path(error.filename or path).name}:{error.lineno}: {error.msg}") from None
    return module


def golden_results(
    golden: Callable[..., Any], read: Mapping[str, Any], further: Mapping[str, str]
) -> tuple[np.ndarray, ...]:
    """What the golden function returns for what the kernel reads."""
    import numpy as np

    named = {name: number_of("golden_arguments", name, text, float) for name, text in further.items()}
    try:
        inspect.signature(golden).bind(*read.values(), **named)
    except TypeError as error:
        given = ", ".join([*read, *(f"{name}=..." for name in named)])
        raise TestFailed(f"the golden function cannot be called as {golden.__name__}({given}): {error}") from None
    returned = golden(*read.values(), **named)
    results = tuple(np.asarray(part) for part in (returned if isinstance(returned, tuple) else (returned,)))
    for part in results:
        if part.dtype == object or part.dtype.kind in "SU":
            raise TestFailed(f"the golden function returns {part.dtype} where an array of numbers is needed")
    return results


def function_of(module: ModuleType, name: str, attribute: str) -> Callable[..., Any]:
    """A function of the golden file, which an attribute of the rule names."""
    found = getattr(module, name, None)
    if not callable(found):
        raise TestFailed(f"{module.__name__}.py has no function {name!r}; name it by the attribute `{attribute}`")
    return found  # type: ignore[no-any-return]


def tolerance_of(parameters: Sequence[ParameterSummary], plan: Mapping[str, Any]) -> float:
    """The largest error allowed, relative to the largest number of the result."""
    if plan["tolerance"]:
        return float(number_of("tolerance", "", plan["tolerance"], float))
    return max((TOLERANCES.get(p.dtype, 0.0) for p in parameters if p.kind == "tensor"), default=0.0)


def compare(name: str, got: np.ndarray, expected: np.ndarray, tolerance: float) -> str:
    """One line about a result; raises `TestFailed` when it is wrong."""
    import numpy as np

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
    from pypto.runtime.errors import RUN_ERRORS

    target = bundle.description.target
    golden = function_of(module, plan["function"], "function")
    kernel = bundle.load(plan["entry"])
    entries = [entry for entry in bundle.entries if entry.name == plan["entry"]]
    check_dimensions([entry.description for entry in entries], plan["dimensions"])
    for entry in entries:
        parameters = entry.description.params
        values = arguments_of(parameters, plan, module)
        read = {
            parameter.name: value.copy() if isinstance(value, np.ndarray) else value
            for parameter, value in zip(parameters, values, strict=True)
            if parameter.direction != "out"
        }
        program = kernel.programs[entry.key.digest]
        if plan["ranks"] and not isinstance(program, DistributedProgram):
            raise TestFailed(f"ranks is for distributed programs, and {plan['entry']} runs on one device")
        talks = isinstance(program, DistributedProgram) and program.host.cores_talk
        config = RunConfig(
            backend_type=target.backend_type,
            execution_mode=target.execution_mode,
            # A checked run has a copy of the memory, which no other rank reaches.
            sim_checks=not talks,
            distributed_config=DistributedConfig(range(plan["ranks"])) if plan["ranks"] else None,
        )
        try:
            program(*values, config=config)
        except (*RUN_ERRORS, TypeError, ValueError) as error:
            raise TestFailed(f"{entry.description.signature} on {target.backend_type}: {error}") from None
        results = [(p.name, value) for p, value in zip(parameters, values, strict=True) if p.direction != "in"]
        expected = golden_results(golden, read, plan["golden_arguments"])
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
