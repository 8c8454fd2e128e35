"""A kernel of a bundle as a callable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pypto.bundle.errors import NoMatchingSpecialization
from pypto.runtime import prebuilt
from pypto.runtime.arguments import bind

if TYPE_CHECKING:
    from pypto.bundle.reading import Bundle, BundleEntry
    from pypto.runtime.config import RunConfig
    from pypto.runtime.program import CompiledProgram


class SealedKernel:
    """All specializations of one kernel of a bundle; a call chooses among them by its arguments.

    Attributes:
        name: the kernel's name.
        programs: the live program of each specialization, by key digest.
    """

    def __init__(self, name: str, entries: tuple[BundleEntry, ...], programs: dict[str, CompiledProgram]) -> None:
        self.name = name
        self.programs = programs
        self._entries = entries

    @classmethod
    def load(cls, bundle: Bundle, entries: tuple[BundleEntry, ...]) -> SealedKernel:
        """Read, check and load the READY files of `entries`; each byte is read and hashed once.

        Raises:
            BundleDamaged: naming the file.
            LoadError, DeviceUnavailable: intact files that this process cannot load or run.
        """
        programs = {
            entry.key.digest: prebuilt.load(entry.ready.load(), output_dir=entry.ready.directory) for entry in entries
        }
        return cls(entries[0].name, entries, programs)

    def __call__(self, *args: object, config: RunConfig | None = None) -> Any:
        """Run the kernel on NumPy arrays (or anything with `__dlpack__`) and numbers, in place on their memory.

        Raises:
            NoMatchingSpecialization: no specialization takes these arguments, or several do; all are listed.
            TypeError, ValueError: the only specialization does not take them.
            KernelRunError, SimulatorCheckError: the run failed.
        """
        program = self._choose(args)
        return program(*args, config=config)

    def __repr__(self) -> str:
        return f"<sealed kernel {self.name}, {len(self.programs)} specialization(s)>"

    def _choose(self, args: tuple[object, ...]) -> CompiledProgram:
        if len(self.programs) == 1:
            return next(iter(self.programs.values()))
        taking = []
        lines = []
        for entry in self._entries:
            program = self.programs[entry.key.digest]
            try:
                bind(self.name, program.config.params, args)
            except (TypeError, ValueError) as error:
                lines.append(f"  {entry.description.signature}: {error}")
            else:
                taking.append(program)
                lines.append(f"  {entry.description.signature}: takes them (key {entry.key.digest})")
        if len(taking) == 1:
            return taking[0]
        problem = "no specialization takes" if not taking else f"{len(taking)} specializations take"
        raise NoMatchingSpecialization("\n".join([f"{self.name}(): {problem} these arguments:", *lines]))
