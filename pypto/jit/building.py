"""Private builds: the build steps in private directories, and what a kernel needs to be completed later."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.build.generate import generate, pack_sources
from pypto.build.layout import files_of, ready_files
from pypto.jit.private import private_parent
from pypto.jit.request import Request
from pypto.jit.stats import count, timing
from pypto.runtime.compiled import CompiledKernel, Origin, ReadyFiles
from pypto.runtime.errors import UnsupportedArtifactInput

if TYPE_CHECKING:
    from pypto.ir.nodes import Program
    from pypto.ir.passes.pipeline import Observer
    from pypto.language.source import SourceClosure
    from pypto.toolchain.host import Tools


def run_generation(request: Request, directory: Path, observe: Observer | None = None) -> Program:
    """The generation stage, counted, into an empty directory; ``observe`` is shown the program after each pass."""
    count("generation_builds")
    with timing("build_ns"):
        return generate(request.closure, request.specialization, directory, observe)


def run_binaries(
    generated: Path, directory: Path, parent: Path, *, closure: SourceClosure, tools: Tools | None = None
) -> tuple[str, ...]:
    """The binary stage, counted: a READY directory from a generated one; scratch folders are made in ``parent``.

    Args:
        closure: what was generated of; errors of a compiler name its hand-written files where they stand.
        tools: those that the key of a shared result was made of; default those in force.

    Returns the files that a compiler read and no identity covers: with any, the directory must not be shared.

    Raises:
        ToolchainNotInstalled: no tools are installed; names the command that installs them.
        ToolError: a tool failed.
        CompilerOutputError: hand-written code is no kernel.
    """
    from pypto.build.binaries import build_binaries
    from pypto.jit.extern_places import errors_at_sources
    from pypto.toolchain import in_force

    toolchain = in_force() if tools is None else tools
    count("binary_builds")
    with timing("build_ns"), errors_at_sources(generated, closure):
        return build_binaries(generated, toolchain, directory, parent)


def new_private_directory(parent: Path, name: str) -> Path:
    """A new directory with mode 0700 and a name nobody can guess."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))


def build_private(request: Request) -> CompiledKernel:
    """Generate in a private directory that stays as long as anybody wants it."""
    parent = private_parent(request.policy.root)
    directory = new_private_directory(parent, request.function.name)
    packed = True
    try:
        program = run_generation(request, directory / "generated")
        try:
            pack_sources(program, directory / "generated")
        except UnsupportedArtifactInput:
            # Compiled where its sources stand, and looked at anew by the next request.
            packed = False
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return private_kernel(request, directory, program, reusable=packed)


def private_kernel(
    request: Request, directory: Path, program: Program | None, *, key: str | None = None, reusable: bool = True
) -> CompiledKernel:
    """A kernel whose generated directory is ``directory/generated``; its READY directory will be beside it."""
    generated = directory / "generated"

    def complete() -> ReadyFiles:
        ready = directory / "ready"
        # A failed attempt leaves nothing that a retry could take for its own.
        shutil.rmtree(ready, ignore_errors=True)
        run_binaries(generated, ready, directory, closure=request.closure)
        return ReadyFiles(read_ready(ready), Origin.PRIVATE, ready)

    return CompiledKernel(
        request.specialization,
        complete=complete,
        origin=Origin.PRIVATE,
        directory=generated,
        locate=request.locate,
        program=program,
        key=key,
        reusable=reusable,
        run_directory=directory / "run",
    )


def read_ready(directory: Path) -> dict[str, bytes]:
    """Bytes of every file of a READY directory by path."""
    return {name: (directory / name).read_bytes() for name in files_of(directory, ready_files)}
