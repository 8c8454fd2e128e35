"""A kernel of a bundle as a callable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pypto.bundle.errors import NoMatchingSpecialization
from pypto.runtime import prebuilt
from pypto.runtime.arguments import bind
from pypto.runtime.distributed.program import DistributedProgram
from pypto.runtime.errors import HostProgramError

if TYPE_CHECKING:
    from pypto.bundle.reading import BundleEntry
    from pypto.runtime.config import RunConfig
    from pypto.runtime.distributed.program import DistributedWorker
    from pypto.runtime.program import CompiledProgram

    Program = CompiledProgram | DistributedProgram


class SealedKernel:
    """All specializations of one kernel of a bundle; a call chooses among them by its arguments.

    Attributes:
        name: the kernel's name.
        programs: the live program of each specialization, by key digest.
    """

    def __init__(
        self, name: str, entries: tuple[BundleEntry, ...], programs: Mapping[str, CompiledProgram | DistributedProgram]
    ) -> None:
        self.name = name
        self.programs = programs
        self._entries = entries

    @classmethod
    def load(cls, entries: tuple[BundleEntry, ...]) -> SealedKernel:
        """Read, check and load the READY files of `entries`; each byte is read and hashed once.

        Raises:
            BundleDamaged: naming the file.
            LoadError, DeviceUnavailable: intact files that this process cannot load or run.
        """
        return cls(entries[0].name, entries, {entry.key.digest: _load(entry) for entry in entries})

    def __call__(self, *args: object, config: RunConfig | None = None) -> Any:
        """Run the kernel on NumPy arrays (or anything with `__dlpack__`) and numbers, in place on their memory.

        Raises:
            NoMatchingSpecialization: no specialization takes these arguments, or several do; all are listed.
            TypeError, ValueError: the only specialization does not take them.
            KernelRunError, SimulatorCheckError: the run failed.
        """
        program = self._choose(args, config)
        return program(*args, config=config)

    def __repr__(self) -> str:
        return f"<sealed kernel {self.name}, {len(self.programs)} specialization(s)>"

    def prepare(self, config: RunConfig | None = None) -> DistributedWorker:
        """A worker of a distributed program, whose ranks stay until it is closed.

        Raises:
            ValueError: the kernel has several specializations, is the program of a single chip, or ``config`` has no
                ``distributed_config``.
        """
        programs = list(self.programs.values())
        if len(programs) != 1 or not isinstance(programs[0], DistributedProgram):
            raise ValueError(f"{self!r} is not one distributed program; call it, it chooses by the arguments")
        return programs[0].prepare(config)

    def _choose(self, args: tuple[object, ...], config: RunConfig | None) -> Program:
        if len(self.programs) == 1:
            return next(iter(self.programs.values()))
        taking = []
        lines = []
        for entry in self._entries:
            program = self.programs[entry.key.digest]
            try:
                if isinstance(program, DistributedProgram):
                    program.bind(args, program.settings(config).world_size)
                else:
                    bind(self.name, program.config.params, args)
            except (TypeError, ValueError, HostProgramError) as error:
                lines.append(f"  {entry.description.signature}: {error}")
            else:
                taking.append(program)
                lines.append(f"  {entry.description.signature}: takes them (key {entry.key.digest})")
        if len(taking) == 1:
            return taking[0]
        problem = "no specialization takes" if not taking else f"{len(taking)} specializations take"
        advice = [f"call one of them by its key: bundle.load({self.name!r}).programs[KEY](...)"] if taking else []
        raise NoMatchingSpecialization("\n".join([f"{self.name}(): {problem} these arguments:", *lines, *advice]))


def _load(entry: BundleEntry) -> Program:
    files = entry.ready.load()
    if prebuilt.is_distributed(files):
        return DistributedProgram(files)
    return prebuilt.load(files, output_dir=entry.ready.directory)
