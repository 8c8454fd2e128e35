"""All files of the generated directory."""

from __future__ import annotations

from typing import Any

from pypto._identity.records import canonical_json
from pypto.codegen.incore import Kernel, print_kernel
from pypto.codegen.orchestration import print_orchestration
from pypto.codegen.rewrites import prepared
from pypto.codegen.tensors import TaskArguments, task_arguments
from pypto.codegen.wrapper import print_wrapper
from pypto.ir.errors import IRError
from pypto.ir.nodes import CoreType, ExternSource, Function, Loc, Param, Program
from pypto.ir.ops.lowering import ByElement, Template
from pypto.ir.ops.registry import definition
from pypto.ir.types import TensorType

SCHEMA = 1
RUNTIME_ABI = 1
RUNTIME = "host_build_graph"


def generate(
    program: Program,
    backend_type: str,
    execution_mode: str,
    runtime: str = RUNTIME,
    memory_planner: str = "PYPTO",
) -> dict[str, bytes]:
    """The generated directory of a program: relative paths and contents.

    A pure function: equal programs give equal bytes in every process. The program is not changed.

    Args:
        program: verified, with memory spaces and core types.
        backend_type: such as ``Ascend910B``.
        execution_mode: ``sim`` or ``device``.
        runtime: ``host_build_graph`` or ``tensormap_and_ringbuffer``.
        memory_planner: who reuses on-chip memory, as `pypto.codegen.buffers.plan_buffers` takes it.

    Raises:
        IRError: something in the program has no lowering; the error has its place in the source.
    """
    files: dict[str, bytes] = {}
    kernels: dict[str, tuple[int, Function, TaskArguments]] = {}
    entries: list[dict[str, Any]] = []
    for number, source in enumerate(program.incore_functions()):
        if source.core is None:
            raise IRError(f"internal: {source.name} has no core type", source.loc)
        if source.extern is not None:
            if execution_mode == "device" and source.extern.lanes > 1:
                raise IRError(f"{source.name}: dual_aiv_dispatch is not supported on devices", source.loc)
            kernels[source.name] = (number, source, task_arguments(source))
            entries.append(_extern_entry(number, source, source.core, source.extern))
            continue
        function = prepared(source)
        kernel = print_kernel(function, backend_type, memory_planner)
        if execution_mode == "device":
            _require_instructions(kernel)
        kernels[function.name] = (number, function, kernel.arguments)
        entry = _kernel_entry(number, function.name, source.core, kernel)
        entries.append(entry)
        files[entry["pto"]] = kernel.pto.encode()
        files[entry["source"]] = print_wrapper(function, kernel).encode()
    main = program.entry_function
    orchestration = f"orchestration/{main.name}.cpp"
    files[orchestration] = print_orchestration(main, kernels).encode()
    config = {
        "schema": SCHEMA,
        "entry": main.name,
        "build_kind": "single_chip",
        "runtime": runtime,
        "runtime_abi": RUNTIME_ABI,
        "backend_type": backend_type,
        "execution_mode": execution_mode,
        "params": [described(p) for p in main.params],
        "returns": list(main.returns),
        "orchestration": {"source": orchestration, "binary": f"prebuilt/orchestration/{main.name}.so"},
        "kernels": entries,
    }
    files["kernel_config.json"] = canonical_json(config)
    return dict(sorted(files.items()))


def _require_instructions(kernel: Kernel) -> None:
    """Raise the error about the first thing in a kernel that only the simulator can do."""
    if kernel.templates:
        raise _simulator_only(kernel)
    if kernel.functions:
        raise _function_on_core(kernel)


def _kernel_entry(number: int, name: str, core: CoreType, kernel: Kernel) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "core": core.value,
        "pto": f"ptoas/{name}.pto",
        "cpp": f"ptoas/{name}.cpp",
        "source": f"kernels/{core.value}/{name}.cpp",
        "binary": f"prebuilt/kernels/{name}.so",
        "repairs": kernel.repairs,
        "ops": kernel.ops,
    }


def _simulator_only(kernel: Kernel) -> IRError:
    """The error about the first operation that runs as a template of ours."""
    noted = kernel.ops[kernel.templates[0]]
    known = definition(noted["op"])
    template = known.lowering.template if isinstance(known.lowering, ByElement) else known.lowering
    call = template.stands_for if isinstance(template, Template) else ""
    has = f"PTO-ISA has {call}, but ptoas 0.1.1 cannot print it" if call else "ptoas 0.1.1 has no instruction for it"
    return IRError(
        f"not supported on devices: {known.label} on these element types ({has}); it runs on the simulator",
        Loc(noted["function"], noted["line"], noted["column"]),
    )


def _function_on_core(kernel: Kernel) -> IRError:
    """The error about the first function of a number that a core would compute."""
    noted = kernel.ops[kernel.functions[0]]
    name = noted["op"].removeprefix("arith.")
    return IRError(
        f"not supported on devices: pl.{name} of a number on a core, whose compiler has no functions of numbers; "
        "compute it in the entry in front of the scope, or as a tile; it runs on the simulator",
        Loc(noted["function"], noted["line"], noted["column"]),
    )


def _extern_entry(number: int, function: Function, core: CoreType, code: ExternSource) -> dict[str, Any]:
    """A kernel whose code is not generated; its paths lead out of the directory until its sources are packed."""
    lane = {} if code.lanes == 1 else {"lane": code.lane, "lanes": code.lanes}
    return {
        "id": number,
        "name": function.name,
        "core": core.value,
        "source": code.source,
        "binary": f"prebuilt/kernels/{function.name}.so",
        "extern": {"include_dirs": list(code.include_dirs), "files": [], **lane},
        "repairs": {},
        "ops": [],
    }


def described(param: Param) -> dict[str, Any]:
    """A parameter of an entry as its configuration has it."""
    type = param.type
    if isinstance(type, TensorType):
        return {
            "name": param.name,
            "kind": "tensor",
            "direction": param.direction.value,
            "dtype": type.dtype.name,
            "shape": [dim if isinstance(dim, int) else str(dim) for dim in type.shape],
        }
    return {"name": param.name, "kind": "scalar", "direction": param.direction.value, "dtype": str(type)}
