"""``kernel_config.json`` as typed values: what a program takes and returns, its kernels and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pypto._identity.records import parse_canonical_json
from pypto.runtime.config import BackendType, ExecutionMode
from pypto.runtime.errors import LoadError
from pypto.runtime.targets import RUNTIMES

CONFIG_FILE = "kernel_config.json"
CONFIG_SCHEMA = 1
MANIFEST_FILE = "binary_manifest.json"
RUNTIME_ABI = 1
"""Version of the C interface between Python and an orchestration object; `PYPTO_RUNTIME_ABI` in the headers."""
MAX_RANK = 8

DTYPES = (
    "FP32", "FP16", "BF16", "INT8", "INT16", "INT32", "INT64",
    "UINT8", "UINT16", "UINT32", "UINT64", "BOOL", "INDEX",
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One parameter of an entry.

    Attributes:
        shape: lengths of a tensor's axes, an int or the name of a dynamic dimension each; empty for a scalar.
    """

    name: str
    kind: Literal["tensor", "scalar"]
    direction: Literal["in", "out", "inout"]
    dtype: str
    shape: tuple[int | str, ...] = ()


@dataclass(frozen=True)
class KernelOp:
    """An operation of a kernel and where it stands: line 1 is the first line of ``function``."""

    op: str
    function: str
    line: int
    column: int


@dataclass(frozen=True)
class KernelEntry:
    """One incore kernel: function id, name, core type and files."""

    id: int
    name: str
    core: Literal["aic", "aiv"]
    source: str
    binary: str
    ops: tuple[KernelOp, ...]


@dataclass(frozen=True)
class KernelConfig:
    """A compiled program's description."""

    entry: str
    build_kind: str
    runtime: str
    runtime_abi: int
    backend_type: str
    execution_mode: str
    params: tuple[Parameter, ...]
    returns: tuple[int, ...]
    orchestration_source: str
    orchestration_binary: str
    kernels: tuple[KernelEntry, ...]

    @classmethod
    def from_bytes(cls, data: bytes, what: str = CONFIG_FILE) -> KernelConfig:
        """Read the file's bytes; ``what`` names it in errors.

        Raises:
            LoadError: it is not canonical JSON, or not a configuration that this PyPTO reads.
        """
        try:
            return cls.from_record(parse_canonical_json(data, what), what)
        except ValueError as error:
            raise LoadError(str(error)) from None

    @classmethod
    def from_record(cls, record: object, what: str = CONFIG_FILE) -> KernelConfig:
        """Read the parsed file; raises as `from_bytes` does. Unknown fields are ignored."""
        top = _Fields(record, what)
        if top.take("schema", int) != CONFIG_SCHEMA:
            raise LoadError(f"{what} has schema {top.take('schema', int)}, this PyPTO reads schema {CONFIG_SCHEMA}")
        orchestration = _Fields(top.take("orchestration", dict), f"{what}: orchestration")
        config = cls(
            entry=top.take("entry", str),
            build_kind=top.take("build_kind", str),
            runtime=top.choose("runtime", RUNTIMES),
            runtime_abi=top.take("runtime_abi", int),
            backend_type=top.choose("backend_type", tuple(backend.value for backend in BackendType)),
            execution_mode=top.choose("execution_mode", tuple(mode.value for mode in ExecutionMode)),
            params=tuple(_parameter(_Fields(p, f"{what}: params")) for p in top.take("params", list)),
            returns=tuple(top.take("returns", list)),
            orchestration_source=orchestration.take("source", str),
            orchestration_binary=orchestration.take("binary", str),
            kernels=tuple(_kernel(_Fields(k, f"{what}: kernels")) for k in top.take("kernels", list)),
        )
        config._check(what)
        return config

    @property
    def binaries(self) -> tuple[str, ...]:
        """Paths of all shared objects."""
        return (*(kernel.binary for kernel in self.kernels), self.orchestration_binary)

    @property
    def load_files(self) -> tuple[str, ...]:
        """Paths of all files, besides this configuration, that loading needs."""
        return (MANIFEST_FILE, *self.binaries)

    def _check(self, what: str) -> None:
        _refuse_repeated(what, "parameter name", [param.name for param in self.params])
        _refuse_repeated(what, "function id", [kernel.id for kernel in self.kernels])
        _refuse_repeated(what, "binary", list(self.binaries))
        for index in self.returns:
            in_range = type(index) is int and 0 <= index < len(self.params)
            if not in_range or self.params[index].direction == "in":
                raise LoadError(f"{what}: returns names parameter {index!r}, which is no output")


def read_parameters(records: Sequence[object], what: str) -> tuple[Parameter, ...]:
    """The parameters of a configuration from their records; ``what`` names the file.

    Raises:
        LoadError: a record is damaged.
    """
    params = tuple(_parameter(_Fields(record, f"{what}: params")) for record in records)
    _refuse_repeated(what, "parameter name", [param.name for param in params])
    return params


def _refuse_repeated(what: str, kind: str, values: Sequence[object]) -> None:
    repeated = next((value for value in values if values.count(value) > 1), None)
    if repeated is not None:
        raise LoadError(f"{what}: the {kind} {repeated!r} stands twice")


class _Fields:
    def __init__(self, record: object, what: str) -> None:
        if not isinstance(record, Mapping):
            raise LoadError(f"{what} is not an object")
        self._record = record
        self.what = what

    def take(self, name: str, kind: type) -> Any:
        value = self._record.get(name)
        if type(value) is not kind:
            raise LoadError(f"{self.what}: the field {name!r} is {value!r}, a {kind.__name__} was expected")
        return value

    def choose(self, name: str, choices: tuple[str, ...]) -> Any:
        value = self.take(name, str)
        if value not in choices:
            raise LoadError(f"{self.what}: the field {name!r} is {value!r}, expected {' or '.join(choices)}")
        return value


def _parameter(fields: _Fields) -> Parameter:
    kind = fields.choose("kind", ("tensor", "scalar"))
    shape: tuple[int | str, ...] = ()
    if kind == "tensor":
        shape = tuple(fields.take("shape", list))
        if not 1 <= len(shape) <= MAX_RANK:
            raise LoadError(f"{fields.what}: a tensor of rank {len(shape)}; the rank is 1 to {MAX_RANK}")
        for length in shape:
            if not (type(length) is str and length) and not (type(length) is int and length > 0):
                raise LoadError(f"{fields.what}: the length {length!r} is neither a positive int nor a name")
    directions = ("in", "out", "inout") if kind == "tensor" else ("in",)
    return Parameter(
        name=fields.take("name", str),
        kind=kind,
        direction=fields.choose("direction", directions),
        dtype=fields.choose("dtype", DTYPES),
        shape=shape,
    )


def _kernel(fields: _Fields) -> KernelEntry:
    ops = (_Fields(op, f"{fields.what}: ops") for op in fields.take("ops", list))
    return KernelEntry(
        id=fields.take("id", int),
        name=fields.take("name", str),
        core=fields.choose("core", ("aic", "aiv")),
        source=fields.take("source", str),
        binary=fields.take("binary", str),
        ops=tuple(
            KernelOp(op.take("op", str), op.take("function", str), op.take("line", int), op.take("column", int))
            for op in ops
        ),
    )
