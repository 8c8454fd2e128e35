"""The generate step: kernel source to the generated directory and the request record. Uses no tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto._identity.records import canonical_json, is_digest, parse_canonical_json
from pypto._identity.source import SOURCE_SCHEMA, SPECIALIZATION_SCHEMA, source_digest, specialization_digest
from pypto.build.errors import BuildError
from pypto.build.layout import new_directory, write_file
from pypto.build.specialize import Specialization

if TYPE_CHECKING:
    from pypto.build.options import CompileOptions
    from pypto.ir.nodes import Program
    from pypto.ir.passes.pipeline import Observer
    from pypto.language.source import SourceClosure

REQUEST_SCHEMA = 1


@dataclass(frozen=True)
class RequestRecord:
    """What the seal step has to know about a generated directory.

    Attributes:
        entry: qualified name of the entry.
        source_digest: digest of the source closure.
        specialization: plain specialization record.
    """

    entry: str
    source_digest: str
    specialization: Mapping[str, Any]

    @property
    def specialization_digest(self) -> str:
        """Digest of the specialization record."""
        return specialization_digest(self.specialization)

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical_json(
            {
                "schema": REQUEST_SCHEMA,
                "source_schema": SOURCE_SCHEMA,
                "specialization_schema": SPECIALIZATION_SCHEMA,
                "entry": self.entry,
                "source_digest": self.source_digest,
                "specialization": dict(self.specialization),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes, what: str) -> RequestRecord:
        """Read a request record; ``what`` names the file.

        Raises:
            BuildError: it is damaged, or written by a PyPTO with other schemas.
        """
        try:
            record = parse_canonical_json(data, what)
        except ValueError as error:
            raise BuildError(str(error)) from None
        schemas = {
            "schema": REQUEST_SCHEMA,
            "source_schema": SOURCE_SCHEMA,
            "specialization_schema": SPECIALIZATION_SCHEMA,
        }
        if not isinstance(record, dict) or any(record.get(name) != value for name, value in schemas.items()):
            raise BuildError(f"{what} is not a request record that this PyPTO reads; run the generate step again")
        entry, digest, specialization = (record.get(n) for n in ("entry", "source_digest", "specialization"))
        if not isinstance(entry, str) or not isinstance(digest, str) or not is_digest(digest):
            raise BuildError(f"{what} is not a complete request record; run the generate step again")
        if not isinstance(specialization, dict):
            raise BuildError(f"{what} is not a complete request record; run the generate step again")
        return cls(entry, digest, specialization)


def specialized_program(closure: SourceClosure, specialization: Specialization) -> Program:
    """The typed IR of an entry for a specialization, before any pass.

    Raises:
        CompileError: the kernel is wrong, with its place.
    """
    from pypto.language.parser import parse

    return parse(closure.entry, specialization.arguments(), closure)


def lowered_program(closure: SourceClosure, specialization: Specialization, observe: Observer | None = None) -> Program:
    """The IR that code is generated from, after all passes; raises as `specialized_program`.

    Args:
        observe: shown the program after ``Parse`` and after each pass.
    """
    from pypto.language.lower import lower

    return lower(closure, specialization.arguments(), specialization.options.backend_type, observe)


def generate(
    closure: SourceClosure, specialization: Specialization, out: Path, observe: Observer | None = None
) -> Program:
    """Write the generated directory of one specialization into ``out`` (absent or empty).

    Returns the program that the files were made from.

    Args:
        observe: as `lowered_program`.

    Raises:
        CompileError: the kernel is wrong, with its place.
        BuildError: ``out`` cannot be used.
    """
    from pypto.language.lower import errors_at_source

    _refuse_windows(closure)
    program = lowered_program(closure, specialization, observe)
    with errors_at_source(closure):
        write_generated(program, specialization.options, out)
    return program


def write_generated(program: Program, options: CompileOptions, out: Path) -> None:
    """Write the generated directory of a program after all passes into ``out`` (absent or empty).

    Raises:
        IRError: something in the program has no lowering.
        BuildError: ``out`` cannot be used.
    """
    from pypto.codegen.generate import generate as generate_files
    from pypto.codegen.host import generate_distributed

    make = generate_distributed if program.chips else generate_files
    files = make(program, options.backend_type, options.execution_mode, options.runtime, options.memory_planner)
    root = new_directory(out)
    for name in sorted(files):
        write_file(root, name, files[name])


def _refuse_windows(closure: SourceClosure) -> None:
    """Only a HOST entry has windows to hand to an entry that takes some."""
    from pypto.language.signature import Signature

    entry = closure.entry
    window = next((p.name for p in Signature.of(entry).params if p.window), None)
    if window is not None:
        raise entry.text.error(
            f"{window} is a window (pld.DistributedTensor): {entry.name} is called from a function under @pl.jit.host, "
            "which makes it with pld.window",
            entry.text.parameter(window),
        )


def pack_sources(program: Program, directory: Path) -> None:
    """Pack the hand-written sources of a generated directory into it, so that it needs nothing outside of itself.

    Raises:
        UnsupportedArtifactInput: a source needs something that cannot be packed; the directory is as it was.
        OSError: a file cannot be read or written.
    """
    functions = [function for part in (program, *program.chips) for function in part.functions.values()]
    if any(function.extern is not None for function in functions):
        from pypto.runtime._artifact_sources import package_generated_sources

        package_generated_sources(directory, "distributed" if program.chips else "single_chip")


def request_record(closure: SourceClosure, specialization: Specialization) -> RequestRecord:
    """The request record that belongs to what `generate` writes."""
    return RequestRecord(specialization.entry, source_digest(closure.record()), specialization.record())
