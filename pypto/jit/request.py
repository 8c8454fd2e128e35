"""One request for a compiled kernel: everything that was captured when it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto._identity.records import digest_record
from pypto._identity.source import source_digest
from pypto.build.options import CompileOptions, coerce_options
from pypto.build.specialize import Specialization, specialize
from pypto.jit.binding import sample_tensors
from pypto.jit.config import CachePolicy, capture_policy
from pypto.jit.sealed import bundle_paths
from pypto.language.source import SourceClosure, collect

if TYPE_CHECKING:
    from pypto._identity.identity import ToolchainIdentity
    from pypto.jit.function import JITFunction
    from pypto.runtime.config import RunConfig
    from pypto.toolchain import Toolchain

_APPLICATION_SCHEMA = 1


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
    def forced(self) -> bool:
        """Whether diagnostics or an explicit output directory ask for a compile of its own."""
        config = self.config
        return config.dump_passes or config.dump_ptoas_passes or config.save_kernels or config.compile_profiling

    @cached_property
    def source_digest(self) -> str:
        """Digest of the source closure."""
        return source_digest(self.closure.record())

    @cached_property
    def specialization_digest(self) -> str:
        """Digest of the specialization record."""
        return self.specialization.digest()

    @cached_property
    def application_source_digest(self) -> str:
        """Source digest that also holds the application's own inputs; equal to the plain one when there are none.

        Raises:
            IdentityUnavailable: an extra source is missing or cannot be read.
        """
        return _with_application_inputs(self.source_digest, self.policy)

    def sources_changed(self) -> bool:
        """Whether anything that the digests were taken of is different now."""
        from pypto.language.errors import CompileError

        try:
            now = source_digest(collect(self.function).record())
            return _with_application_inputs(now, self.policy) != self.application_source_digest
        except (CompileError, IdentityUnavailable):
            return True


def capture(
    function: JITFunction, samples: Sequence[Any], named: Mapping[str, Any], config: RunConfig | None
) -> Request:
    """Capture a request.

    Raises:
        TypeError: arguments that do not fit the parameters.
        BuildError: samples that contradict annotations, a missing sample, or an option that is not supported.
        CompileError: the source closure cannot be made.
        ValueError: an illegal environment variable of the cache configuration.
    """
    from pypto.runtime.config import RunConfig

    if config is None:
        config = RunConfig()
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
    signature = function.signature
    return specialize(function.qualname, signature.params, sample_tensors(signature, samples, named), options)


def compile_options(config: RunConfig) -> CompileOptions:
    """The part of a call's settings that changes what is compiled."""
    return coerce_options(
        {
            "backend_type": config.backend_type,
            "execution_mode": config.execution_mode,
            "strategy": config.strategy,
            "memory_planner": config.memory_planner,
        }
    )


def environment_identity(toolchain: Toolchain, options: CompileOptions) -> ToolchainIdentity:
    """The identity of a build with these tools.

    Raises:
        IdentityUnavailable: a component cannot be identified.
    """
    from pypto._identity.hermetic import hermetic_identity

    identity = hermetic_identity(toolchain.descriptor.record(), device=options.execution_mode == "device")
    if not identity.usable:
        raise IdentityUnavailable(identity.explain())
    return identity


def _with_application_inputs(digest: str, policy: CachePolicy) -> str:
    if not policy.extra_source_paths and policy.extra_fingerprint is None:
        return digest
    from pypto._identity.content import fingerprint_extra_sources

    extra = fingerprint_extra_sources(policy.extra_source_paths)
    if extra.digest is None:
        raise IdentityUnavailable(f"extra_source_paths: {extra.reason}")
    return digest_record(
        {
            "schema": _APPLICATION_SCHEMA,
            "source": digest,
            "extra_sources": extra.digest if policy.extra_source_paths else None,
            "extra_fingerprint": policy.extra_fingerprint,
        }
    )
