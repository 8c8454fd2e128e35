"""Warmup files: JSON lists of the kernels to prepare, checked completely before anything is built."""

from __future__ import annotations

import importlib
import json
import math
import sys
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.build.errors import BuildError
from pypto.ir.types import DTYPES, DType
from pypto.jit.cli.errors import WarmupFileError
from pypto.jit.config import CacheConfig
from pypto.jit.function import JITFunction
from pypto.jit.request import Request, capture
from pypto.language.errors import CompileError
from pypto.runtime.config import BackendType, ExecutionMode, MemoryPlanner, OptimizationStrategy, RunConfig, RuntimeKind

SCHEMA_VERSION = 1
TENSOR_DTYPES = ("FP16", "BF16", "FP32", "INT8", "INT16", "INT32", "INT64", "BOOL")

_ENUMERATIONS = {
    "strategy": OptimizationStrategy,
    "memory_planner": MemoryPlanner,
    "backend_type": BackendType,
    "execution_mode": ExecutionMode,
    "runtime": RuntimeKind,
}
_FLAGS = ("dump_passes", "dump_ptoas_passes", "save_kernels")
_RUN_CONFIG = (*_ENUMERATIONS, *_FLAGS, "platform", "save_kernels_dir", "distributed_config")
_DISTRIBUTED = ("device_ids", "num_sub_workers", "runtime", "aicpu_thread_num")


@dataclass(frozen=True)
class MetaTensor:
    """A sample tensor without data."""

    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class WarmupRequest:
    """One request of a warmup file: the kernel's name and what was captured for it."""

    kernel: str
    request: Request


def load_warmup(module: str, path: Path) -> tuple[WarmupRequest, ...]:
    """Read a warmup file, import the module and capture every request. Builds nothing.

    Paths in the file are relative to its folder. The module must be trusted: importing it runs it.

    Raises:
        WarmupFileError: naming the first thing that is wrong in the file, in the module, or in how they fit.
    """
    document = _read(path)
    top = _Fields(document, str(path), ("schema_version", "cache", "requests"))
    version = top.take("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise WarmupFileError(f"{path}: schema_version is {SCHEMA_VERSION}, got {_shown(version)}")
    folder = path.absolute().parent
    cache = _cache(top.object("cache"), folder) if "cache" in document else None
    requests = top.take("requests")
    if type(requests) is not list or not requests:
        raise WarmupFileError(f"{path}: requests is a list of at least one request, got {_shown(requests)}")
    loaded = _import(module)
    return tuple(
        _request(loaded, module, _Fields(item, f"{path}: requests[{i}]", _REQUEST), cache, folder)
        for i, item in enumerate(requests)
    )


_REQUEST = ("kernel", "run_config", "tensors", "scalars")


class _Fields:
    """A JSON object whose fields are known; `where` is its place for messages."""

    def __init__(self, value: object, where: str, allowed: tuple[str, ...] | None) -> None:
        if not isinstance(value, dict):
            raise WarmupFileError(f"{where} is an object, got {_shown(value)}")
        unknown = [name for name in value if allowed is not None and name not in allowed]
        if unknown:
            raise WarmupFileError(f"{where}: unknown field {unknown[0]!r}; it has {', '.join(allowed or ())}")
        self.values: dict[str, Any] = value
        self.where = where

    def take(self, name: str) -> Any:
        if name not in self.values:
            raise WarmupFileError(f"{self.where}: the field {name!r} is missing")
        return self.values[name]

    def object(self, name: str, allowed: tuple[str, ...] | None = None) -> _Fields:
        return _Fields(self.values.get(name, {}), f"{self.where}: {name}", allowed)

    def wrong(self, name: str, expected: str) -> WarmupFileError:
        return WarmupFileError(f"{self.where}: {name} is {expected}, got {_shown(self.values[name])}")


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _read(path: Path) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            names = [name for name, _ in pairs]
            raise ValueError(f"the field {next(n for n in names if names.count(n) > 1)!r} stands twice")
        return fields

    def constant(text: str) -> float:
        raise ValueError(f"{text} is not a JSON number")

    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique, parse_constant=constant)
    except OSError as error:
        raise WarmupFileError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise WarmupFileError(f"{path} is not JSON: {error}") from None


def _import(name: str) -> Any:
    # As with `python -m`, modules of the working directory are found.
    if "" not in sys.path:
        sys.path.insert(0, "")
    if not all(part.isidentifier() for part in name.split(".")):
        raise WarmupFileError(
            f"--module is the name of a module as `import` takes it, such as my_kernels; got {name!r}"
        )
    try:
        return importlib.import_module(name)
    except CompileError as error:
        raise WarmupFileError(f"module {name}: {error}") from None
    except SystemExit as error:
        raise WarmupFileError(f"module {name} ended the process when it was imported: SystemExit: {error}") from None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith("<frozen ")][1:]
        place = f" ({own[-1].filename}:{own[-1].lineno})" if own and not isinstance(error, ImportError) else ""
        raise WarmupFileError(f"module {name} cannot be imported: {type(error).__name__}: {error}{place}") from None


def _cache(fields: _Fields, folder: Path) -> CacheConfig:
    checked = _Fields(
        fields.values, fields.where, ("enabled", "root", "readonly", "extra_source_paths", "extra_fingerprint")
    )
    values = dict(checked.values)
    if values.get("root") is not None:
        values["root"] = _path(checked, "root", folder)
    if "extra_source_paths" in values:
        paths = values["extra_source_paths"]
        if type(paths) is not list or not all(isinstance(item, str) and item for item in paths):
            raise checked.wrong("extra_source_paths", "a list of paths")
        values["extra_source_paths"] = tuple(folder / item for item in paths)
    try:
        return CacheConfig(**values)
    except TypeError as error:
        raise WarmupFileError(f"{fields.where}: {error}") from None


def _path(fields: _Fields, name: str, folder: Path) -> Path:
    value = fields.values[name]
    if not isinstance(value, str) or not value:
        raise fields.wrong(name, "a path")
    return folder / value


def _request(module: Any, module_name: str, fields: _Fields, cache: CacheConfig | None, folder: Path) -> WarmupRequest:
    name = fields.take("kernel")
    function = _kernel(module, module_name, name, fields)
    config = _run_config(fields.object("run_config", _RUN_CONFIG), cache, folder)
    samples = _samples(function, fields)
    try:
        return WarmupRequest(name, capture(function, samples, {}, config))
    except (CompileError, BuildError, TypeError, ValueError) as error:
        raise WarmupFileError(f"{fields.where}: {error}") from None


def _kernel(module: Any, module_name: str, name: object, fields: _Fields) -> JITFunction:
    if not isinstance(name, str):
        raise fields.wrong("kernel", "the name of a @pl.jit function")
    found = vars(module).get(name)
    if isinstance(found, JITFunction):
        return found
    names = sorted(each for each, value in vars(module).items() if isinstance(value, JITFunction))
    listed = ", ".join(names) or "none"
    problem = f"has no {name!r}" if found is None else f"has {name!r}, but it is no @pl.jit function"
    raise WarmupFileError(f"{fields.where}: module {module_name} {problem}; its @pl.jit functions: {listed}")


def _run_config(fields: _Fields, cache: CacheConfig | None, folder: Path) -> RunConfig:
    values = dict(fields.values)
    for name, kind in _ENUMERATIONS.items():
        if name in values:
            members: Mapping[str, Any] = kind.__members__
            if not isinstance(values[name], str) or values[name] not in members:
                raise fields.wrong(name, " or ".join(members))
            values[name] = members[values[name]]
    for name in _FLAGS:
        if name in values and not isinstance(values[name], bool):
            raise fields.wrong(name, "true or false")
    if "save_kernels_dir" in values:
        values["save_kernels_dir"] = _path(fields, "save_kernels_dir", folder)
    if "distributed_config" in values:
        values["distributed_config"] = fields.object("distributed_config", _DISTRIBUTED).values
    try:
        with warnings.catch_warnings():
            # The file's spelling is its own; whoever runs it cannot change a call.
            warnings.simplefilter("ignore", DeprecationWarning)
            return RunConfig(**values, cache_config=cache)
    except (TypeError, ValueError) as error:
        raise WarmupFileError(f"{fields.where}: {error}") from None


def _samples(function: JITFunction, fields: _Fields) -> list[Any]:
    """Sample arguments in parameter order; without sample tensors nothing is bound and scalars are only checked."""
    tensors, scalars = fields.object("tensors"), fields.object("scalars")
    try:
        parameters = function.signature.params
    except CompileError as error:
        raise WarmupFileError(f"{fields.where}: {error}") from None
    for given, kind in ((tensors, "tensor"), (scalars, "scalar")):
        names = [p.name for p in parameters if p.kind == kind]
        for name in given.values:
            if name not in names:
                listed = ", ".join(names) or "none"
                raise WarmupFileError(f"{given.where}: {function.name} has no {kind} {name!r}; its {kind}s: {listed}")
    samples = {name: _tensor(tensors.object(name, ("shape", "dtype"))) for name in tensors.values}
    numbers = {name: _scalar(scalars, name) for name in scalars.values}
    if not samples:
        return []
    values: list[Any] = []
    for parameter in parameters:
        if parameter.is_tensor:
            values.append(samples.get(parameter.name))
        elif parameter.name in numbers:
            values.append(numbers[parameter.name])
        elif parameter.has_default:
            values.append(parameter.default)
        else:
            raise WarmupFileError(
                f"{fields.where}: with sample tensors every scalar is needed, and {parameter.name!r} is missing in "
                "scalars; any value will do, scalars do not select what is compiled"
            )
    return values


def _tensor(fields: _Fields) -> MetaTensor:
    shape, dtype = fields.take("shape"), fields.take("dtype")
    if type(shape) is not list or not all(type(size) is int and size >= 0 for size in shape):
        raise fields.wrong("shape", "a list of integers of 0 or more")
    if dtype not in TENSOR_DTYPES:
        raise fields.wrong("dtype", " or ".join(TENSOR_DTYPES))
    return MetaTensor(tuple(shape), DTYPES[dtype])


def _scalar(fields: _Fields, name: str) -> int | float | bool:
    value = fields.values[name]
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise fields.wrong(name, "a finite number or true or false")
