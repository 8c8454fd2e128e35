"""The HOST entry of a distributed program as data: what ``kernel_config.json`` of its parent says.

A block is a list of operations over numbered values, as the IR has them; parameters are the first values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto._identity.records import parse_canonical_json
from pypto.runtime.config import BackendType, ExecutionMode
from pypto.runtime.errors import LoadError
from pypto.runtime.kernel_config import CONFIG_FILE, RUNTIME_ABI, Parameter, read_parameters
from pypto.runtime.targets import RUNTIMES

HOST_SCHEMA = 1


@dataclass(frozen=True)
class HostOp:
    """One operation.

    Attributes:
        name: such as ``host.call``; see `pypto.ir.ops.host`.
        operands, results: numbers of values.
        attrs: plain data.
        regions: nested blocks.
        place: function and line, counted from the function's first line, that the operation stands in.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attrs: Mapping[str, Any]
    regions: tuple[HostBlock, ...]
    place: tuple[str, int] | None


@dataclass(frozen=True)
class HostBlock:
    """Operations in order, with the values that the block is entered with."""

    args: tuple[int, ...]
    ops: tuple[HostOp, ...]


@dataclass(frozen=True)
class HostProgram:
    """A distributed program's parent.

    Attributes:
        chips: directories of the chips' programs, by the number that calls use.
    """

    entry: str
    backend_type: str
    execution_mode: str
    runtime: str
    params: tuple[Parameter, ...]
    returns: tuple[int, ...]
    chips: tuple[str, ...]
    body: HostBlock

    @property
    def cores_talk(self) -> bool:
        """Whether cores reach windows of other ranks."""
        return _any_windows(self.body)

    @classmethod
    def from_bytes(cls, data: bytes, what: str = CONFIG_FILE) -> HostProgram:
        """Read the parent's configuration.

        Raises:
            LoadError: it is damaged, or not one that this PyPTO reads.
        """
        try:
            record = parse_canonical_json(data, what)
            host = record["host"]
            if record["schema"] != 1 or host["schema"] != HOST_SCHEMA or record["runtime_abi"] != RUNTIME_ABI:
                raise LoadError(f"{what} is of another version of PyPTO; build the program again")
            program = cls(
                entry=str(record["entry"]),
                backend_type=BackendType(record["backend_type"]).value,
                execution_mode=ExecutionMode(record["execution_mode"]).value,
                runtime=str(record["runtime"]),
                params=read_parameters(record["params"], what),
                returns=tuple(record["returns"]),
                chips=tuple(map(str, record["chips"])),
                body=_block(host["body"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LoadError(f"{what} does not describe a distributed program: {error!r}") from None
        if program.runtime not in RUNTIMES:
            raise LoadError(f"{what} names the runtime {program.runtime!r}, expected {' or '.join(RUNTIMES)}")
        return program


def _any_windows(block: HostBlock) -> bool:
    return any(op.attrs.get("windows") or any(map(_any_windows, op.regions)) for op in block.ops)


def _block(record: Mapping[str, Any]) -> HostBlock:
    return HostBlock(tuple(record["args"]), tuple(map(_op, record["ops"])))


def _op(record: Mapping[str, Any]) -> HostOp:
    place = record.get("place")
    return HostOp(
        name=record["op"],
        operands=tuple(record.get("in", ())),
        results=tuple(record.get("out", ())),
        attrs=dict(record.get("attrs", {})),
        regions=tuple(map(_block, record.get("regions", ()))),
        place=None if place is None else (str(place[0]), int(place[1])),
    )
