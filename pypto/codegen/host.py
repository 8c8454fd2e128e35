"""A distributed program's generated directory: the HOST entry as data in the parent, a directory for every chip."""

from __future__ import annotations

import enum
from typing import Any

from pypto._identity.records import canonical_json
from pypto.codegen.generate import RUNTIME, RUNTIME_ABI, SCHEMA, described
from pypto.codegen.generate import generate as generate_chip
from pypto.ir.nodes import Block, Op, Program, Value
from pypto.ir.types import DType

HOST_SCHEMA = 1


def generate_distributed(
    program: Program,
    backend_type: str,
    execution_mode: str,
    runtime: str = RUNTIME,
    memory_planner: str = "PYPTO",
) -> dict[str, bytes]:
    """The generated directory of a distributed program; arguments and errors as `pypto.codegen.generate.generate`."""
    files: dict[str, bytes] = {}
    chips = [f"chips/{number}" for number in range(len(program.chips))]
    for folder, chip in zip(chips, program.chips, strict=True):
        made = generate_chip(chip, backend_type, execution_mode, runtime, memory_planner)
        files |= {f"{folder}/{name}": data for name, data in made.items()}
    main = program.entry_function
    numbers: dict[int, int] = {}
    for param in main.params:
        _number(param.value, numbers)
    body = _block(main.body, numbers)
    body["args"] = [numbers[id(param.value)] for param in main.params]
    config = {
        "schema": SCHEMA,
        "entry": main.name,
        "build_kind": "distributed",
        "runtime": runtime,
        "runtime_abi": RUNTIME_ABI,
        "backend_type": backend_type,
        "execution_mode": execution_mode,
        "params": [described(param) for param in main.params],
        "returns": list(main.returns),
        "chips": chips,
        "host": {"schema": HOST_SCHEMA, "body": body},
    }
    files["kernel_config.json"] = canonical_json(config)
    return dict(sorted(files.items()))


def _number(value: Value, numbers: dict[int, int]) -> int:
    return numbers.setdefault(id(value), len(numbers))


def _block(block: Block, numbers: dict[int, int]) -> dict[str, Any]:
    return {
        "args": [_number(arg, numbers) for arg in block.args],
        "ops": [_op(op, numbers) for op in block.ops],
    }


def _op(op: Op, numbers: dict[int, int]) -> dict[str, Any]:
    record: dict[str, Any] = {"op": op.name}
    if op.operands:
        record["in"] = [numbers[id(value)] for value in op.operands]
    attrs = _attrs(op)
    if attrs:
        record["attrs"] = attrs
    if op.regions:
        record["regions"] = [_block(region, numbers) for region in op.regions]
    if op.results:
        record["out"] = [_number(value, numbers) for value in op.results]
    if op.loc is not None and op.name not in ("scf.yield", "scf.return", "arith.constant"):
        record["place"] = [op.loc.function, op.loc.line]
    return record


def _attrs(op: Op) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    for name, value in op.attrs.items():
        if isinstance(value, float):
            # JSON has many spellings of a number.
            attrs["hex"] = value.hex()
        elif isinstance(value, (DType, enum.Enum)):
            attrs[name] = value.name
        elif isinstance(value, tuple):
            attrs[name] = list(value)
        else:
            attrs[name] = value
    if op.name in ("tensor.create", "tensor.read") or (op.name.startswith("arith.") and op.name != "arith.constant"):
        attrs["dtype"] = op.result.type.dtype.name
    return attrs
