"""One request for a compiled kernel: everything that was captured when it was made."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto._identity.records import digest_record
from pypto._identity.source import source_digest
from pypto.build.options import CompileOptions, coerce_options
from pypto.build.specialize import Specialization, specialize
from pypto.ir.nodes import FunctionKind
from pypto.jit.binding import rank_samples, sample_tensors
from pypto.jit.config import CachePolicy, capture_policy
from pypto.jit.sealed import bundle_paths
from pypto.language.source import SourceClosure, collect

if TYPE_CHECKING:
    from pypto._identity.explain import IdentityParts
    from pypto._identity.identity import ToolchainIdentity
    from pypto._identity.policy import IdentitySettings
    from pypto.jit.artifact_cache.spec import ArtifactSpec
    from pypto.jit.function import JITFunction
    from pypto.runtime.config import RunConfig
    from pypto.toolchain import Toolchain
    from pypto.toolchain.host import Tools

_APPLICATION_SCHEMA = 1
_SPECIALIZATIONS = 256
_NUMBERS = frozenset({int, float, bool})


class IdentityUnavailable(Exception):
    """An input of a request cannot be identified, so the persistent cache cannot be used; the message says which."""


@dataclass(frozen=True)
class Request:
    """A captured request; later changes of configuration, environment or globals do not change it.

    Attributes:
        function: the entry.
        closure: its source with the values that outside names had.
        specialization: what it is compiled for.
        policy: cache policy.
        bundles: sealed bundles that may answer it, in order.
        config: the call's settings.
    """

    function: JITFunction
    closure: SourceClosure
    specialization: Specialization
    policy: CachePolicy
    bundles: tuple[Path, ...]
    config: RunConfig

    @property
    def distributed(self) -> bool:
        """Whether a HOST entry is asked for, whose program has chips."""
        return self.function.kind is FunctionKind.HOST

    @property
    def generated_spec(self) -> ArtifactSpec:
        """The spec under which the GENERATED stage is stored; a HOST entry is parsed for it.

        Raises:
            CompileError: the HOST entry is wrong, with its place.
        """
        from pypto.build.generate import specialized_program
        from pypto.build.layout import chip_directory
        from pypto.build.specs import GENERATED_SPEC, generated_spec

        if not self.distributed:
            return GENERATED_SPEC
        chips = specialized_program(self.closure, self.specialization).chips
        return generated_spec(map(chip_directory, range(len(chips))))

    @property
    def forced(self) -> bool:
        """Whether diagnostics or an explicit output directory ask for a compile of its own."""
        config = self.config
        kept = config.save_kernels or config.save_kernels_dir is not None
        return kept or config.dump_passes or config.dump_ptoas_passes or config.compile_profiling

    @cached_property
    def source_digest(self) -> str:
        """Digest of the source closure."""
        return _source_digest(self.function, self.closure)

    @cached_property
    def specialization_digest(self) -> str:
        """Digest of the specialization record."""
        return _specialization_digest(self.specialization)

    @cached_property
    def application_inputs(self) -> dict[str, str | None]:
        """The application's own inputs, as they were when this was first asked for; empty when it names none.

        Raises:
            IdentityUnavailable: an extra source is missing or cannot be read.
        """
        return _application_inputs(self.policy)

    @cached_property
    def application_source_digest(self) -> str:
        """Source digest that also holds the application's own inputs; equal to the plain one when there are none.

        Raises:
            IdentityUnavailable: as `application_inputs`.
        """
        return _with_application_inputs(self.source_digest, self.application_inputs)

    def identity_parts(self, environment: ToolchainIdentity) -> IdentityParts:
        """What the request's key is made from, for `pypto._identity.explain.explain`.

        Raises:
            IdentityUnavailable: an extra source is missing or cannot be read.
        """
        from pypto._identity.explain import IdentityParts

        return IdentityParts.of(
            environment,
            self.application_source_digest,
            self.specialization_digest,
            source={**self.closure.record(), **self.application_inputs},
            specialization=self.specialization.record(),
        )

    def locate(self, function: str, line: int) -> tuple[str, int] | None:
        """File and line of a place that is relative to a function of the closure."""
        for source in self.closure.functions:
            kernel = source.kernel
            if function in (kernel.qualname, kernel.name):
                return kernel.filename, kernel.text.first_line + line - 1
        return None

    def sources_changed(self) -> bool:
        """Whether anything that the digests were taken of is different now."""
        from pypto.language.errors import CompileError

        try:
            now = _source_digest(self.function, collect(self.function))
            inputs = _application_inputs(self.policy)
            return _with_application_inputs(now, inputs) != self.application_source_digest
        except (CompileError, IdentityUnavailable):
            return True


def capture(
    function: JITFunction, samples: Sequence[Any], named: Mapping[str, Any], config: RunConfig | None
) -> Request:
    """Capture a request.

    Raises:
        TypeError: arguments that do not fit the parameters.
        SampleError: a missing sample, or samples that contradict annotations.
        BuildError: an option that is not supported.
        CompileError: the source closure cannot be made.
        ValueError: an illegal environment variable of the cache configuration.
    """
    from pypto.runtime.config import RunConfig

    if config is None:
        config = _default_config()
    elif not isinstance(config, RunConfig):
        raise TypeError(f"config is a pypto.runtime.RunConfig, got {config!r}")
    return Request(
        function=function,
        closure=collect(function),
        specialization=specialization_of(function, samples, named, compile_options(config)),
        policy=capture_policy(config.cache_config),
        bundles=bundle_paths(),
        config=config,
    )


def specialization_of(
    function: JITFunction, samples: Sequence[Any], named: Mapping[str, Any], options: CompileOptions
) -> Specialization:
    """The specialization of an entry for sample arguments."""
    name = None if named else _sample_key(samples, options)
    known = function.specializations.get(name) if name is not None else None
    if known is not None:
        return known
    signature = function.signature
    if function.kind is FunctionKind.HOST:
        samples = [rank_samples(value) for value in samples]
        named = {name: rank_samples(value) for name, value in named.items()}
    made = specialize(function.qualname, signature.params, sample_tensors(signature, samples, named), options)
    if name is not None and len(function.specializations) < _SPECIALIZATIONS:
        function.specializations[name] = made
    return made


def _sample_key(samples: Sequence[Any], options: CompileOptions) -> Hashable | None:
    """What of positional samples selects a specialization; ``None`` if that cannot be told by looking at attributes."""
    key: list[Any] = [options]
    for value in samples:
        kind = type(value)
        if kind in _NUMBERS:
            key.append(kind)
            continue
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if type(shape) is not tuple or dtype is None:
            return None
        key.append((shape, dtype))
    name = tuple(key)
    try:
        hash(name)
    except TypeError:
        return None
    return name


def compile_options(config: RunConfig) -> CompileOptions:
    """The part of a call's settings that changes what is compiled."""
    return _coerced(config.backend_type, config.execution_mode, config.runtime, config.strategy, config.memory_planner)


@functools.lru_cache(maxsize=64)
def _coerced(
    backend_type: object, execution_mode: object, runtime: object, strategy: object, memory_planner: object
) -> CompileOptions:
    return coerce_options(
        {
            "backend_type": backend_type,
            "execution_mode": execution_mode,
            "runtime": runtime,
            "strategy": strategy,
            "memory_planner": memory_planner,
        }
    )


@functools.cache
def _default_config() -> RunConfig:
    from pypto.runtime.config import RunConfig

    return RunConfig()


def environment_identity(toolchain: Tools, options: CompileOptions, settings: IdentitySettings) -> ToolchainIdentity:
    """The identity of a build with these tools; under settings that read content, every byte of the tools is read.

    Raises:
        IdentityUnavailable: a component cannot be identified.
    """
    from pypto.toolchain import Toolchain

    if isinstance(toolchain, Toolchain):
        identity = _environments.of(toolchain, options.execution_mode == "device", settings)
    else:
        identity = toolchain.identity(options.execution_mode, settings)
    if not identity.usable:
        raise IdentityUnavailable(identity.explain())
    return identity


def _source_digest(function: JITFunction, closure: SourceClosure) -> str:
    """The digest of a closure, or that of the entry's latest one if it holds the very same functions and values."""
    latest = function.latest_digest
    if latest is not None and _same_closure(latest[0], closure):
        return latest[1]
    digest = source_digest(closure.record())
    function.latest_digest = (closure, digest)
    return digest


def _same_closure(one: SourceClosure, other: SourceClosure) -> bool:
    # By identity: equality would take 1, 1.0 and True for the same constant.
    return len(one.functions) == len(other.functions) and all(
        a.kernel is b.kernel
        and a.values.keys() == b.values.keys()
        and all(value is b.values[name] for name, value in a.values.items())
        for a, b in zip(one.functions, other.functions, strict=True)
    )


@functools.lru_cache(maxsize=256)
def _specialization_digest(specialization: Specialization) -> str:
    return specialization.digest()


class _Environments:
    """The identity of the latest toolchain object; it stays the same object until its files change."""

    def __init__(self) -> None:
        self._latest: tuple[Toolchain, bool, IdentitySettings, ToolchainIdentity] | None = None

    def of(self, toolchain: Toolchain, device: bool, settings: IdentitySettings) -> ToolchainIdentity:
        latest = self._latest
        if latest is not None and latest[0] is toolchain and latest[1:3] == (device, settings):
            return latest[3]
        from pypto._identity.hermetic import hermetic_identity

        descriptor = toolchain.descriptor
        if settings.reads_content:
            from pypto.toolchain import ToolchainError
            from pypto.toolchain.measured import measured

            try:
                descriptor = measured(toolchain, device=device, strict=settings.strict)
            except ToolchainError as error:
                raise IdentityUnavailable(str(error)) from None
        identity = hermetic_identity(descriptor.record(), device=device, settings=settings)
        if identity.usable:
            self._latest = (toolchain, device, settings, identity)
        return identity


_environments = _Environments()


def _with_application_inputs(digest: str, inputs: Mapping[str, str | None]) -> str:
    return digest_record({"schema": _APPLICATION_SCHEMA, "source": digest, **inputs}) if inputs else digest


def _application_inputs(policy: CachePolicy) -> dict[str, str | None]:
    if not policy.extra_source_paths and policy.extra_fingerprint is None:
        return {}
    from pypto._identity.content import fingerprint_extra_sources

    extra = fingerprint_extra_sources(policy.extra_source_paths)
    if extra.digest is None:
        raise IdentityUnavailable(f"extra_source_paths: {extra.reason}")
    return {
        "extra_sources": extra.digest if policy.extra_source_paths else None,
        "extra_fingerprint": policy.extra_fingerprint,
    }
