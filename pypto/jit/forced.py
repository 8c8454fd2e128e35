"""Compilations that are asked for their side output: files that are kept, dumps, reports.

They look nothing up, publish nothing, and their objects serve no other request. Their output directory holds generated
code and, once it is needed, binaries side by side; see `pypto.runtime.binary_context` for what of it is built again.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pypto.build.complete import complete
from pypto.build.generate import pack_sources
from pypto.build.output import make_output, replace_generated
from pypto.build.profile import CompileProfile, profiling
from pypto.build.report.passes import PassRecorder
from pypto.build.report.writing import PTOAS_DUMPS, clear_reports, write_report
from pypto.ir.nodes import Program
from pypto.jit import building
from pypto.jit.private import private_parent
from pypto.jit.request import Request
from pypto.jit.stats import count, timing
from pypto.runtime.compiled import CompiledKernel, Origin, ReadyFiles
from pypto.runtime.errors import UnsupportedArtifactInput
from pypto.toolchain.cleanup import ended_by_sigterm


def build_forced(request: Request) -> CompiledKernel:
    """Compile without looking anywhere, and keep what the call's settings ask for.

    The output directory is ``RunConfig.save_kernels_dir``, which may hold an earlier compilation, or a new one below
    ``build_output``.

    Raises:
        CompileError: the kernel is wrong, with its place.
        BuildError: the directory cannot be used.
    """
    return _Forced(request).compile()


class _Forced:
    def __init__(self, request: Request) -> None:
        self.request = request
        config = request.config
        self.parent = private_parent(request.policy.root)
        if config.save_kernels_dir is not None:
            self.directory = make_output(Path(config.save_kernels_dir))
        else:
            self.directory = building.new_private_directory(self.parent, request.function.name)
        clear_reports(self.directory)
        self.profile = CompileProfile(ptoas_dumps=self.directory / PTOAS_DUMPS if config.dump_ptoas_passes else None)

    def compile(self) -> CompiledKernel:
        request = self.request
        program = self._generate()
        self._report(program)
        return CompiledKernel(
            request.specialization,
            complete=lambda: self._complete(program),
            origin=Origin.PRIVATE,
            directory=self.directory,
            locate=request.locate,
            program=program,
            reusable=False,
            run_directory=self.directory / "run",
        )

    def _generate(self) -> Program:
        """Generate beside the output directory, and exchange its generated files when that went well."""
        dumped = self.directory if self.request.config.dump_passes else None
        with (
            ended_by_sigterm(),
            self._removed_if_useless(),
            tempfile.TemporaryDirectory(prefix=".generated.", dir=self.parent) as scratch,
        ):
            generated = Path(scratch, "generated")
            recorder = PassRecorder(self.profile, dumped)
            program = building.run_generation(self.request, generated, recorder)
            recorder.end()
            # Sources that cannot be packed are compiled where they stand.
            with contextlib.suppress(UnsupportedArtifactInput):
                pack_sources(program, generated)
            replace_generated(generated, self.directory)
        return program

    @contextlib.contextmanager
    def _removed_if_useless(self) -> Iterator[None]:
        """A new directory goes away with a compilation that failed, unless dumps tell how far it came."""
        try:
            yield
        except BaseException:
            if self.request.config.save_kernels_dir is None and not self.request.config.dump_passes:
                shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def _complete(self, program: Program) -> ReadyFiles:
        from pypto.toolchain import in_force

        with profiling(self.profile), timing("build_ns"):
            built = complete(self.directory, in_force())
        if built:
            count("binary_builds")
        self._report(program)
        return ReadyFiles(building.read_ready(self.directory), Origin.PRIVATE, self.directory)

    def _report(self, program: Program) -> None:
        write_report(self.directory, program, self.profile if self.request.config.compile_profiling else None)
