"""What a request returns: a kernel that is generated at least, and complete once it was warmed up or called."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.build.specialize import Specialization
    from pypto.ir.nodes import Program
    from pypto.language.source import SourceClosure
    from pypto.runtime.config import RunConfig
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
    """A complete READY artifact: its validated bytes by path and where it stands."""

    files: Mapping[str, bytes]
    origin: Origin
    directory: Path | None


class CompiledKernel:
    """A compiled specialization of a JIT function. Safe to use from several threads.

    Attributes:
        specialization: what it was compiled for.
        program: the IR, if this process compiled it; ``None`` for an object restored from a cache or bundle.
        key: digest of the artifact key; ``None`` when there was no persistent cache to need one.
        bundle_digest: digest of the sealed bundle that it comes from.
        reusable: whether later requests of this process may have it; not if its sources changed while it was built.
    """

    def __init__(
        self,
        specialization: Specialization,
        closure: SourceClosure,
        *,
        complete: Callable[[], ReadyFiles],
        origin: Origin,
        directory: Path | None,
        program: Program | None = None,
        key: str | None = None,
        bundle_digest: str | None = None,
        ready: ReadyFiles | None = None,
        reusable: bool = True,
    ) -> None:
        self.specialization = specialization
        self.program = program
        self.key = key
        self.bundle_digest = bundle_digest
        self.reusable = reusable
        self._closure = closure
        self._complete = complete
        self._origin = origin
        self._directory = directory
        self._ready = ready
        self._loaded: CompiledProgram | None = None
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """``GENERATED``, or ``READY`` once all binaries exist."""
        return "READY" if self._ready is not None else "GENERATED"

    @property
    def origin(self) -> Origin:
        """Where the artifact of the present state stands; a private one is not there for other processes."""
        return self._ready.origin if self._ready is not None else self._origin

    @property
    def output_dir(self) -> Path | None:
        """Directory of the artifact of the present state."""
        return self._ready.directory if self._ready is not None else self._directory

    def ensure_ready(self) -> None:
        """Build the binaries if they are missing; starts no device and runs no kernel.

        Raises:
            ToolchainNotInstalled: tools are needed and none are installed.
            ToolError: a tool failed; the request may be repeated.
        """
        with self._lock:
            if self._ready is None:
                self._ready = self._complete()

    def load(self) -> CompiledProgram:
        """The live program, from validated bytes; builds the binaries if they are missing.

        Raises:
            DeviceUnavailable: the kernel is for a device and there is none.
        """
        self.ensure_ready()
        with self._lock:
            if self._loaded is None:
                from pypto.runtime.prebuilt import load

                assert self._ready is not None
                self._loaded = load(
                    self._ready.files, output_dir=self._ready.directory, program=self.program, locate=self._locate
                )
            return self._loaded

    def __call__(self, *args: Any, config: RunConfig | None = None) -> object:
        """Run with these arguments, one per parameter; builds the binaries if they are missing."""
        return self.load()(*args, config=config)

    def with_output(self, directory: Path, export: Callable[[Path], None]) -> CompiledKernel:
        """The same kernel with its files kept in ``directory``, where ``export`` copies a finished READY directory."""

        def complete() -> ReadyFiles:
            ready = self._complete()
            if ready.directory is not None:
                export(ready.directory)
            return ReadyFiles(ready.files, ready.origin, directory)

        return CompiledKernel(
            self.specialization,
            self._closure,
            complete=complete,
            origin=self._origin,
            directory=directory,
            program=self.program,
            reusable=False,
        )

    def __repr__(self) -> str:
        return f"<CompiledKernel {self.specialization}, {self.state}, {self.origin.value}>"

    def _locate(self, function: str, line: int) -> tuple[str, int] | None:
        for source in self._closure.functions:
            kernel = source.kernel
            if function in (kernel.qualname, kernel.name):
                return kernel.filename, kernel.text.first_line + line - 1
        return None
