"""Specialization: what a kernel is compiled for, in one record that both doors make with the same function.

Shapes, dtypes and options select an artifact. Scalars are run-time values and never do; a dynamic dimension enters by
its name, not by the size that an argument happens to have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pypto._identity.source import SPECIALIZATION_SCHEMA, specialization_digest
from pypto.build.errors import BuildError, SampleError
from pypto.build.options import CompileOptions
from pypto.ir.nodes import Direction
from pypto.ir.types import DTYPES, DType, DynDim
from pypto.language.signature import ArgSpec, SignatureParam


@dataclass(frozen=True)
class TensorMeta:
    """Metadata of a sample tensor: no data, no device, no strides."""

    dtype: DType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class ParameterSpec:
    """One parameter of an entry, specialized.

    Attributes:
        name: name as the user wrote it.
        direction: how the entry uses it; ``In`` for a scalar.
        dtype: element type, or type of the scalar.
        shape: dimensions of a tensor, a dynamic one by its name; ``None`` for a scalar.
    """

    name: str
    direction: Direction
    dtype: DType
    shape: tuple[int | DynDim, ...] | None

    @property
    def kind(self) -> str:
        """``tensor`` or ``scalar``."""
        return "scalar" if self.shape is None else "tensor"

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name}: {self.dtype}"
        return f"{self.name}: {self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Specialization:
    """One concrete variant of an entry.

    Attributes:
        entry: qualified name of the entry function.
        parameters: its parameters, in order.
        options: effective compile options.
    """

    entry: str
    parameters: tuple[ParameterSpec, ...]
    options: CompileOptions

    def record(self) -> dict[str, Any]:
        """The plain record, for digests and for request files."""
        return {
            "schema": SPECIALIZATION_SCHEMA,
            "entry": self.entry,
            "parameters": [_parameter_record(parameter) for parameter in self.parameters],
            "options": dict(self.options.record()),
        }

    def arguments(self) -> dict[str, ArgSpec]:
        """What the parser compiles the entry for, by parameter name."""
        return {parameter.name: ArgSpec(parameter.dtype, parameter.shape) for parameter in self.parameters}

    def digest(self) -> str:
        """Specialization digest: 64 hexadecimal digits."""
        return specialization_digest(self.record())

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        return f"{self.entry}({parameters}) for {self.options.backend_type}, {self.options.execution_mode}"


def _parameter_record(parameter: ParameterSpec) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": parameter.name,
        "kind": parameter.kind,
        "direction": parameter.direction.value,
        "dtype": parameter.dtype.name,
    }
    if parameter.shape is not None:
        record["shape"] = [dim if isinstance(dim, int) else dim.name for dim in parameter.shape]
    return record


def specialize(
    entry: str,
    declared: Sequence[SignatureParam],
    samples: Mapping[str, TensorMeta],
    options: CompileOptions,
) -> Specialization:
    """The specialization of an entry for sample tensors.

    Args:
        entry: qualified name of the entry.
        declared: its parameters as annotated.
        samples: metadata of sample tensors by parameter name; a fully annotated parameter needs none.
        options: effective compile options.

    Raises:
        SampleError: a missing sample, a sample that contradicts its annotation, or two different sizes of one
            dynamic dimension.
    """
    known = {parameter.name for parameter in declared if parameter.is_tensor}
    for name in samples:
        if name not in known:
            raise SampleError(f"{entry} has no tensor parameter {name!r}; its tensors are {', '.join(sorted(known))}")
    sizes: dict[DynDim, tuple[int, str]] = {}
    return Specialization(
        entry=entry,
        parameters=tuple(_parameter(entry, p, samples.get(p.name), sizes) for p in declared),
        options=options,
    )


def _parameter(
    entry: str, declared: SignatureParam, sample: TensorMeta | None, sizes: dict[DynDim, tuple[int, str]]
) -> ParameterSpec:
    if not declared.is_tensor:
        if declared.dtype is None:
            raise SampleError(
                f"parameter {declared.name!r} of {entry} has no type; annotate it, as pl.Scalar[pl.INT32]"
            )
        return ParameterSpec(declared.name, Direction.In, declared.dtype, None)
    if declared.dtype is not None and declared.shape is not None:
        if sample is not None:
            _check_sample(entry, declared, declared.dtype, declared.shape, sample, sizes)
        return ParameterSpec(declared.name, declared.direction, declared.dtype, declared.shape)
    if sample is None:
        raise SampleError(
            f"parameter {declared.name!r} of {entry} has no shape in its annotation: pass a sample tensor, "
            f"TensorSpec({declared.name!r}, [64, 64], pl.FP32), or annotate it as pl.Tensor[[...], pl.FP32]; "
            "in a pypto_kernel, the attribute tensors gives it"
        )
    if declared.dtype is not None and sample.dtype != declared.dtype:
        raise SampleError(f"argument {declared.name!r} of {entry} is {declared.dtype} by its annotation, got {sample}")
    return ParameterSpec(declared.name, declared.direction, sample.dtype, sample.shape)


def _check_sample(
    entry: str,
    declared: SignatureParam,
    dtype: DType,
    shape: tuple[int | DynDim, ...],
    sample: TensorMeta,
    sizes: dict[DynDim, tuple[int, str]],
) -> None:
    wanted = f"{dtype}[{','.join(map(str, shape))}]"
    mismatch = f"argument {declared.name!r} of {entry} is {wanted} by its annotation, got {sample}"
    if sample.dtype != dtype or len(sample.shape) != len(shape):
        raise SampleError(mismatch)
    for dim, size in zip(shape, sample.shape, strict=True):
        if isinstance(dim, int):
            if size != dim:
                raise SampleError(mismatch)
            continue
        first, where = sizes.setdefault(dim, (size, declared.name))
        if first != size:
            raise SampleError(
                f"dimension {dim.name} of {entry} is {first} in argument {where!r} and {size} in argument "
                f"{declared.name!r}; a dynamic dimension has one size in a call"
            )


_DTYPE_SPELLINGS = {
    "float32": "FP32",
    "float16": "FP16",
    "bfloat16": "BF16",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "bool": "BOOL",
}


def dtype_of(value: object) -> DType | None:
    """The element type that a value names: a DType, its name, or an array library's dtype or scalar; else ``None``."""
    if isinstance(value, DType):
        return value
    name = value.__name__ if isinstance(value, type) else str(value).removeprefix("torch.")
    return DTYPES.get(_DTYPE_SPELLINGS.get(name, name))


def tensor_meta(value: object) -> TensorMeta | None:
    """Metadata of an array, of anything with DLPack, or of a metadata-only object such as TensorSpec; else ``None``."""
    if hasattr(value, "__dlpack__") and not hasattr(value, "shape"):
        from pypto.runtime.dlpack import UnsupportedTensor, import_tensor

        try:
            value = import_tensor(value).array
        except UnsupportedTensor as error:
            raise TypeError(f"a DLPack tensor cannot be used: {error}") from None
    shape = getattr(value, "shape", None)
    dtype = dtype_of(getattr(value, "dtype", None))
    if shape is None or dtype is None:
        return None
    try:
        dims = tuple(int(dim) for dim in shape)
    except (TypeError, ValueError):
        return None
    return TensorMeta(dtype, dims)


def parse_tensor_text(name: str, text: str) -> TensorMeta:
    """Metadata from its command-line form, such as ``FP16[128,64]``."""
    dtype_name, bracket, rest = text.partition("[")
    dtype = DTYPES.get(dtype_name)
    dims = rest.removesuffix("]").split(",") if rest.removesuffix("]") else []
    if dtype is None and bracket and dtype_name:
        raise BuildError(f"tensor {name!r} has the dtype {dtype_name!r}; the dtypes are {', '.join(DTYPES)}")
    if dtype is None or not bracket or not rest.endswith("]") or not all(d.isascii() and d.isdigit() for d in dims):
        raise BuildError(f"tensor {name!r} is written DTYPE[DIM,...], such as FP16[128,64]; got {text!r}")
    return TensorMeta(dtype, tuple(map(int, dims)))
