"""Programs of the IR, compiled and run without a JIT function around them: `pypto.ir.compile`, `pypto.runtime.run`."""

from __future__ import annotations

import os
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.build.errors import BuildError
from pypto.build.options import CompileOptions, coerce_options
from pypto.ir.nodes import Program

if TYPE_CHECKING:
    from pypto.build.profile import CompileProfile
    from pypto.runtime.config import RunConfig
    from pypto.runtime.program import CompiledProgram

_UNLOWERED = ("func.scope", "tensor.apply", "tensor.assign")


def compile_program(
    program: Program,
    output_dir: str | os.PathLike[str] | None = None,
    *,
    config: RunConfig | None = None,
    dump_passes: bool = False,
    **options: Any,
) -> CompiledProgram:
    """Compile a program of the IR, such as ``f.specialize(...)`` and ``f.lower(...)`` return, and load it.

    Args:
        program: before or after the passes; it is not changed.
        output_dir: where its files go, which may hold an earlier compilation; default a new folder below
            ``build_output``.
        config: settings of the compilation.
        dump_passes: keep the program after each pass, as ``config.dump_passes``.
        options: compile options in place of those of ``config``: ``backend_type``, ``execution_mode``, ``runtime``,
            ``strategy``, ``memory_planner``.

    Raises:
        IRError: the program is wrong, with its place relative to its function.
        TypeError: it is no program.
        BuildError: an option that there is not, or a directory that cannot be used.
        ToolchainNotInstalled, ToolError: there are no tools, or one failed.
        DeviceUnavailable: it is compiled for an NPU, which this machine does not have; the directory is complete.
    """
    from pypto.build.complete import complete
    from pypto.build.output import make_output, replace_generated
    from pypto.build.profile import CompileProfile, profiling
    from pypto.build.report.writing import PTOAS_DUMPS, clear_reports, write_report
    from pypto.runtime.prebuilt import load_directory
    from pypto.toolchain import in_force
    from pypto.toolchain.cleanup import ended_by_sigterm

    if not isinstance(program, Program):
        raise TypeError(f"ir.compile takes a program, as f.specialize(...) returns it, got {type(program).__name__}")
    if program.chips:
        raise BuildError(
            f"ir.compile takes programs of one chip, and {program.entry} is distributed; call its function"
        )
    chosen = _options(config, options)
    if output_dir is None:
        parent = make_output(Path("build_output").absolute())
        directory = Path(tempfile.mkdtemp(prefix=f"{program.entry}-", dir=parent))
    else:
        directory = make_output(Path(output_dir))
        clear_reports(directory)
    dumps = directory / PTOAS_DUMPS if config is not None and config.dump_ptoas_passes else None
    profile = CompileProfile(ptoas_dumps=dumps)
    dumped = dump_passes or (config is not None and config.dump_passes)
    with ended_by_sigterm(), tempfile.TemporaryDirectory() as scratch:
        generated = Path(scratch, "generated")
        lowered = _generate(program, chosen, generated, profile, directory if dumped else None)
        replace_generated(generated, directory)
    with profiling(profile):
        complete(directory, in_force())
    write_report(directory, lowered, profile if config is not None and config.compile_profiling else None)
    return load_directory(directory, program=lowered)


def run(program: Any, *tensors: Any, config: RunConfig | None = None) -> object:
    """Compile what is not compiled yet, and run it once with these arguments.

    Args:
        program: a ``@pl.jit`` function, a compiled kernel or program, or a program of the IR.
        tensors: one argument per parameter.
        config: settings of the compilation and of the run.

    Returns:
        The entry's returned outputs.
    """
    if isinstance(program, Program):
        program = compile_program(program, config=config)
    elif not callable(program):
        raise TypeError(f"run takes a @pl.jit function or something compiled, got {type(program).__name__}")
    return program(*tensors, config=config)


def _options(config: RunConfig | None, options: dict[str, Any]) -> CompileOptions:
    names = [field.name for field in fields(CompileOptions)]
    given = {} if config is None else {name: getattr(config, name) for name in names}
    return coerce_options(given | options)


def _generate(
    program: Program, options: CompileOptions, out: Path, profile: CompileProfile, dumped: Path | None
) -> Program:
    from pypto.build.generate import pack_sources, write_generated
    from pypto.build.report.passes import PassRecorder
    from pypto.ir.passes import pipeline
    from pypto.ir.rewrite import cloned_program

    recorder = PassRecorder(profile, dumped)
    lowered = cloned_program(program)
    recorder("Parse", lowered)
    if not _is_lowered(lowered):
        pipeline.run(lowered, options.backend_type, recorder)
    write_generated(lowered, options, out)
    recorder.end()
    try:
        pack_sources(lowered, out)
    except ValueError as error:
        raise BuildError(f"hand-written sources of {program.entry} cannot be packed: {error}") from None
    return lowered


def _is_lowered(program: Program) -> bool:
    if any(op.name in _UNLOWERED for op in program.entry_function.body.walk()):
        return False
    return all(function.core is not None for function in program.incore_functions())
