"""A compiled kernel: generated at least, and complete once it was warmed up or called."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pypto._identity.records import parse_canonical_json
from pypto.runtime.config import BackendType, ExecutionMode, platform_name
from pypto.runtime.forks import ForkSafeLock
from pypto.runtime.kernel_config import CONFIG_FILE

if TYPE_CHECKING:
    from pypto.runtime.config import RunConfig
    from pypto.runtime.distributed.program import DistributedProgram, DistributedWorker
    from pypto.runtime.places import Locate
    from pypto.runtime.program import CompiledProgram


class Origin(enum.Enum):
    """Where an artifact stands."""

    BUNDLE = "bundle"
    """In a sealed bundle."""
    SHARED = "shared"
    """In the persistent cache, where other processes find it."""
    PRIVATE = "private"
    """With this process only."""


@dataclass(frozen=True)
class ReadyFiles:
    """A complete READY artifact.

    Attributes:
        files: its bytes by path.
        origin, directory: where it stands.
        digests: SHA-256 by path of those bytes, where they were computed and compared already.
    """

    files: Mapping[str, bytes]
    origin: Origin
    directory: Path | None
    digests: Mapping[str, str] | None = None


class BoundBinaries(Protocol):
    """What a compiled object is bound to; see `pypto.runtime._artifact_runtime.ArtifactRuntime`."""

    directory: Path
    run_directory: Path

    @property
    def known(self) -> ReadyFiles | None: ...

    def files(self) -> ReadyFiles: ...


class CompiledKernel:
    """A compiled specialization of a JIT function. Safe to use from several threads.

    Attributes:
        specialization: what it was compiled for; ``None`` for one that was restored from its artifact alone.
        program: the IR, if this process compiled it; ``None`` for an object restored from a cache or bundle.
        key: digest of the artifact key; ``None`` when there was no persistent cache to need one.
        bundle_digest: digest of the sealed bundle that it comes from.
        reusable: whether later requests of this process may have it; not if its sources changed while it was built.

    What `pypto.runtime.CompiledProgram` tells of itself, it tells as well, and builds nothing for it: ``platform``,
    ``backend_type``, ``execution_mode``, ``param_names``, ``output_indices``, ``has_return``, ``orchestration_names``.
    """

    default_config: RunConfig | None = None

    def __init__(
        self,
        specialization: object | None,
        *,
        origin: Origin,
        directory: Path | None,
        complete: Callable[[], ReadyFiles] | None = None,
        ready: ReadyFiles | None = None,
        locate: Locate | None = None,
        program: object | None = None,
        key: str | None = None,
        bundle_digest: str | None = None,
        reusable: bool = True,
        run_directory: Path | None = None,
    ) -> None:
        self.specialization = specialization
        self.program = program
        self.key = key
        self.bundle_digest = bundle_digest
        self.reusable = reusable
        self._locate = locate
        self._complete = complete
        self._origin = origin
        self._directory = directory
        self._ready = ready
        self._loaded: CompiledProgram | None = None
        self._distributed: DistributedProgram | None = None
        self._lock = ForkSafeLock()
        self._artifact_runtime: BoundBinaries | None = None
        self._run_directory = run_directory

    @property
    def state(self) -> str:
        """``GENERATED``, or ``READY`` once all binaries are known to exist."""
        return "READY" if self._known_ready() is not None else "GENERATED"

    @property
    def origin(self) -> Origin:
        """Where the artifact of the present state stands; a private one is not there for other processes."""
        ready = self._known_ready()
        return self._origin if ready is None else ready.origin

    @property
    def output_dir(self) -> Path | None:
        """Directory of the compiled object; of one that is bound to a store's entry it stays the same for good."""
        if self._artifact_runtime is None and self._ready is not None:
            return self._ready.directory
        return self._directory

    @property
    def binary_dir(self) -> Path | None:
        """Directory of the binaries; ``None`` as long as they are not known to exist."""
        ready = self._known_ready()
        return None if ready is None else ready.directory

    @property
    def run_directory(self) -> Path | None:
        """Where runs put what they leave behind, made when it is first needed; ``None`` when no place was chosen."""
        return self._run_directory if self._artifact_runtime is None else self._artifact_runtime.run_directory

    @property
    def latest_diagnostics(self) -> Path | None:
        """Folder of the latest run that left diagnostics."""
        program = self._distributed or self._loaded
        return None if program is None else program.latest_diagnostics

    @functools.cached_property
    def _description(self) -> Mapping[str, Any]:
        """Its configuration, generated at least."""
        ready, directory = self._known_ready(), self.output_dir
        if ready is not None:
            data = ready.files[CONFIG_FILE]
        elif directory is not None:
            data = (directory / CONFIG_FILE).read_bytes()
        else:
            raise RuntimeError(f"{self!r} has no files")
        description: Mapping[str, Any] = parse_canonical_json(data, CONFIG_FILE)
        return description

    @property
    def backend_type(self) -> BackendType:
        """The hardware generation that it is compiled for."""
        return BackendType(self._description["backend_type"])

    @property
    def execution_mode(self) -> ExecutionMode:
        """``sim`` or ``device``."""
        return ExecutionMode(self._description["execution_mode"])

    @property
    def platform(self) -> str:
        """Its target in one word, such as ``a2a3sim``."""
        return platform_name(self.backend_type, self.execution_mode)

    @property
    def param_names(self) -> tuple[str, ...]:
        """Names of all parameters, in call order."""
        return tuple(param["name"] for param in self._description["params"])

    @property
    def output_indices(self) -> tuple[int, ...]:
        """Positions of the parameters that are written."""
        return tuple(i for i, param in enumerate(self._description["params"]) if param["direction"] != "in")

    @property
    def has_return(self) -> bool:
        """Whether a call returns something."""
        return bool(self._description["returns"])

    @property
    def orchestration_names(self) -> tuple[str, ...]:
        """Names of the entries."""
        return (self._description["entry"],)

    def ensure_ready(self) -> None:
        """Build the binaries if they are missing; starts no device and runs no kernel.

        Raises:
            ToolchainNotInstalled: tools are needed and none are installed.
            ToolError: a tool failed; the request may be repeated.
        """
        self._files()

    def load(self) -> CompiledProgram:
        """The live program, from validated bytes; builds the binaries if they are missing.

        Raises:
            DeviceUnavailable: the kernel is for a device and there is none.
            ValueError: it is a distributed program, whose chips are loaded one by one.
        """
        loaded = self._loaded
        if loaded is not None:
            return loaded
        ready = self._files()
        with self._lock:
            if self._loaded is None:
                from pypto.runtime.prebuilt import load

                self._loaded = load(
                    ready.files,
                    output_dir=ready.directory,
                    program=self.program,
                    locate=self._locate,
                    digests=ready.digests,
                    run_directory=self.run_directory,
                )
            return self._loaded

    def __call__(self, *args: Any, config: RunConfig | None = None) -> object:
        """Run with these arguments, one per parameter; builds the binaries if they are missing."""
        if self._loaded is None:
            distributed = self._ranks()
            if distributed is not None:
                return distributed(*args, config=self.default_config if config is None else config)
        return self.load()(*args, config=config)

    def prepare(self, config: RunConfig | None = None) -> DistributedWorker:
        """A worker of a distributed program, whose ranks stay until it is closed.

        Args:
            config: settings with ``distributed_config``; default those that it was compiled with.

        Raises:
            ValueError: it is the program of a single chip, or there is no ``distributed_config``.
        """
        distributed = self._ranks()
        if distributed is None:
            raise ValueError(f"{self!r} is the program of a single chip; call it, or load() it")
        return distributed.prepare(self.default_config if config is None else config)

    def _ranks(self) -> DistributedProgram | None:
        """The program of ranks, if it is one."""
        if self._distributed is None:
            from pypto.runtime.prebuilt import is_distributed

            ready = self._files()
            if not is_distributed(ready.files):
                return None
            with self._lock:
                if self._distributed is None:
                    from pypto.runtime.distributed.program import DistributedProgram

                    self._distributed = DistributedProgram(
                        ready.files, locate=self._locate, digests=ready.digests, run_directory=self.run_directory
                    )
        return self._distributed

    def bind(self, runtime: BoundBinaries) -> None:
        """Take the binaries from a store's entry from now on; resets the directory, once.

        Raises:
            RuntimeError: it is bound already, or its binaries exist already.
        """
        with self._lock:
            if self._artifact_runtime is not None or self._ready is not None:
                raise RuntimeError(f"{self!r} is bound to an artifact already, or has its binaries")
            self._artifact_runtime = runtime
            self._directory = runtime.directory
            self._origin = Origin.SHARED

    def __repr__(self) -> str:
        what = "kernel" if self.specialization is None else str(self.specialization)
        return f"<CompiledKernel {what}, {self.state}, {self.origin.value}>"

    def _known_ready(self) -> ReadyFiles | None:
        return self._ready if self._artifact_runtime is None else self._artifact_runtime.known

    def _files(self) -> ReadyFiles:
        if self._artifact_runtime is not None:
            return self._artifact_runtime.files()
        with self._lock:
            if self._ready is None:
                if self._complete is None:
                    raise RuntimeError(f"{self!r} has no binaries and nothing to build them from")
                self._ready = self._complete()
            return self._ready


class KernelOnRanks(CompiledKernel):
    """A compiled HOST entry with the ranks that calls of it run on when they name none; all else it shares.

    Attributes:
        default_config: the settings that it was compiled with.
    """

    __slots__ = ("default_config",)

    def __init__(self, kernel: CompiledKernel, config: RunConfig) -> None:
        # One kernel, whatever ranks it is asked for: both see the same binaries and loaded programs.
        self.__dict__ = kernel.__dict__
        self.default_config = config
