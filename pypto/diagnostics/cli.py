"""The commands of ``python -m pypto.diagnostics``."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.jit.function import JITFunction
    from pypto.runtime.config import RunConfig

_DESCRIPTION = """\
Look at a kernel: what the compiler made of it, how a run went, what each pass did to the numbers.

  python -m pypto.diagnostics report    kernels/decode.py:decode --out out    passes, memory, times of the compilation
  python -m pypto.diagnostics run       kernels/decode.py:decode --out out    timeline, graph and scopes of a run
  python -m pypto.diagnostics precision kernels/decode.py:decode              NumPy float64 after each pass, and the run
  python -m pypto.diagnostics timeline  swimlane.json                         a page of a trace that was kept

A kernel is named FILE.py:FUNCTION or MODULE:FUNCTION. Arguments are made up: small random numbers for tensors, 1 for
scalars. --size N=64 gives a dynamic dimension its size, --scalar n=5 a scalar its value, and --tensor x=FP32[64,64]
describes a tensor whose annotation leaves its shape open.

Pages are files that need no network; open them in a browser.
"""
_EXIT = """\
exit status: 0 fine; 1 `precision` found a difference; 2 the kernel cannot be built or run, or the command line is
wrong.
"""
_KERNEL_HELP = "FILE.py:FUNCTION or MODULE:FUNCTION of a @pl.jit function"


_Work = Callable[[argparse.Namespace], int]


class CommandError(Exception):
    """The command cannot do what it was asked for; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0, or 1 if what it looked at is not right, or 2 if it could not look."""
    options = _parser().parse_args(arguments)
    work: _Work = options.work
    try:
        return work(options)
    except CommandError as error:
        print(f"pypto: error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m pypto.diagnostics", description=_DESCRIPTION, epilog=_EXIT, formatter_class=raw
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, work: _Work, text: str, example: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"example:\n  python -m pypto.diagnostics {name} {example}\n\n{_EXIT}",
            formatter_class=raw,
        )
        made.set_defaults(work=work)
        return made

    def kernel(name: str, work: _Work, text: str, options: str) -> argparse.ArgumentParser:
        made = command(name, work, text, f"kernels/softmax.py:softmax --size N=40{options}")
        made.add_argument("kernel", metavar="KERNEL", help=_KERNEL_HELP)
        made.add_argument("--size", action="append", default=[], metavar="N=64", help="size of a dynamic dimension")
        made.add_argument("--scalar", action="append", default=[], metavar="n=5", help="value of a scalar parameter")
        made.add_argument("--tensor", action="append", default=[], metavar="x=FP32[64,64]", help="metadata of a tensor")
        made.add_argument("--seed", type=int, default=0, help="for the random arguments (default 0)")
        made.add_argument(
            "--backend-type", metavar="NAME", default="Ascend910B", help="Ascend910B (default) or Ascend950"
        )
        return made

    report = kernel("report", _report, "compile a kernel and keep every pass, its memory and the times", " --out out")
    report.add_argument("--out", required=True, type=Path, metavar="DIR", help="output directory of the compilation")
    report.add_argument("--ptoas", action="store_true", help="also keep what ptoas makes of each kernel, step by step")
    run = kernel("run", _run, "run a kernel once and keep its timeline, task graph and scopes", " --out out")
    run.add_argument("--out", required=True, type=Path, metavar="DIR", help="output directory of the compilation")
    run.add_argument("--threads", type=int, help="threads that run tasks (default: as many as the machine has)")
    run.add_argument("--ranks", type=int, help="ranks that a distributed program runs on (default 2)")
    precision = kernel("precision", _precision, "compare results after each pass, and compiled, with NumPy float64", "")
    precision.add_argument("--no-run", action="store_true", help="leave out the compiled kernel, which needs tools")
    precision.add_argument("--json", action="store_true", help="print the report as JSON")
    timeline = command("timeline", _timeline, "make a page of a Chrome trace", "out/swimlane.json")
    timeline.add_argument("trace", type=Path, metavar="TRACE.json", help="a trace, such as the swimlane.json of a run")
    timeline.add_argument("--out", type=Path, metavar="FILE.html", help="default: beside the trace")
    return parser


def _report(options: argparse.Namespace) -> int:
    config = _config(
        options,
        save_kernels=True,
        save_kernels_dir=options.out,
        dump_passes=True,
        compile_profiling=True,
        dump_ptoas_passes=options.ptoas,
    )
    _attempt(lambda: _kernel(options).compile(**_samples(options), config=config).ensure_ready())
    print(options.out / "report" / "index.html")
    return 0


def _run(options: argparse.Namespace) -> int:
    function = _kernel(options)
    config = _config(
        options,
        save_kernels=True,
        save_kernels_dir=options.out,
        enable_chip_swimlane=1,
        enable_dep_gen=True,
        enable_scope_stats=True,
        aicpu_thread_num=options.threads,
        distributed_config=_ranks(function, options.ranks),
    )
    before = set(options.out.rglob("run_*/index.html"))

    def work() -> None:
        compiled = function.compile(**_samples(options), config=config)
        compiled(*_arguments(function, options, config), config=config)

    _attempt(work)
    # A page for the run, or one for each call of a rank.
    pages = sorted(set(options.out.rglob("run_*/index.html")) - before)
    if not pages:
        raise CommandError("the run submitted no task")
    print(*pages, sep="\n")
    return 0


def _ranks(function: JITFunction, asked: int | None) -> dict[str, Any] | None:
    """The ranks to run on, of a distributed program."""
    from pypto.ir.nodes import FunctionKind

    if function.kind is FunctionKind.HOST:
        return {"device_ids": range(2 if asked is None else asked)}
    if asked is not None:
        raise CommandError(f"--ranks is for distributed programs, and {function.qualname} runs on one chip")
    return None


def _precision(options: argparse.Namespace) -> int:
    from pypto.diagnostics.precision import check_precision

    function, config = _kernel(options), _config(options)
    values = _attempt(lambda: _arguments(function, options, config))
    report = _attempt(lambda: check_precision(function, *values, config=config, execute=not options.no_run))
    print(json.dumps(report.record(), indent=1) if options.json else report)
    return 0 if report.ok else 1


def _timeline(options: argparse.Namespace) -> int:
    from pypto.diagnostics.trace_format import problems
    from pypto.runtime.diagnostics.timeline_page import timeline_page

    try:
        trace = json.loads(options.trace.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{options.trace} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(f"{options.trace} is not JSON: {error}") from None
    found = problems(trace)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise CommandError(f"{options.trace} is not a Chrome trace: {found[0]}{more}")
    out = options.out or options.trace.with_suffix(".html")
    out.write_text(timeline_page(trace), encoding="utf-8")
    print(out)
    return 0


def _attempt(work: Callable[[], Any]) -> Any:
    """The result of ``work``; what a user can mend becomes one line."""
    from pypto.build.errors import BuildError
    from pypto.language.errors import CompileError
    from pypto.runtime.errors import RUN_ERRORS
    from pypto.toolchain import ToolchainError

    try:
        return work()
    except (*RUN_ERRORS, BuildError, CompileError, ToolchainError, TypeError, ValueError) as error:
        raise CommandError(str(error)) from None


def _kernel(options: argparse.Namespace) -> JITFunction:
    from pypto.jit.function import JITFunction

    place, colon, name = options.kernel.rpartition(":")
    if not colon:
        raise CommandError(f"a kernel is {_KERNEL_HELP}, got {options.kernel!r}")
    module = _module(place)
    found = getattr(module, name, None)
    if not isinstance(found, JITFunction):
        known = sorted(each for each, value in vars(module).items() if isinstance(value, JITFunction))
        raise CommandError(f"{place} has no @pl.jit function {name!r}; it has {', '.join(known) or 'none'}")
    return found


def _module(place: str) -> Any:
    sys.path.insert(0, "")
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = Path(place).resolve()
        if not path.is_file():
            raise CommandError(f"there is no file {place}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except CommandError:
        raise
    except Exception as error:
        raise CommandError(f"{place} cannot be imported: {type(error).__name__}: {error}") from None


def _config(options: argparse.Namespace, **settings: Any) -> RunConfig:
    from pypto.runtime.config import RunConfig

    try:
        return RunConfig(backend_type=options.backend_type, **settings)
    except (TypeError, ValueError) as error:
        raise CommandError(str(error)) from None


def _samples(options: argparse.Namespace) -> dict[str, Any]:
    from pypto.build.specialize import parse_tensor_text

    return {name: parse_tensor_text(name, text) for name, text in _pairs(options.tensor, "--tensor")}


def _arguments(function: JITFunction, options: argparse.Namespace, config: RunConfig) -> list[Any]:
    from pypto.diagnostics.samples import sample_arguments
    from pypto.ir.types import DynDim
    from pypto.jit.request import capture

    parameters = capture(function, (), _samples(options), config).specialization.parameters
    names = {dim.name for parameter in parameters for dim in parameter.shape or () if isinstance(dim, DynDim)}
    sizes = {name: _size(name, text) for name, text in _known(options.size, "--size", names, "dynamic dimension")}
    names = {parameter.name for parameter in parameters if parameter.shape is None}
    scalars = {name: _number(name, text) for name, text in _known(options.scalar, "--scalar", names, "scalar")}
    return sample_arguments(parameters, sizes=sizes, scalars=scalars, seed=options.seed)


def _known(texts: Sequence[str], option: str, names: set[str], what: str) -> list[tuple[str, str]]:
    pairs = _pairs(texts, option)
    unknown = next((name for name, _ in pairs if name not in names), None)
    if unknown is not None:
        raise CommandError(
            f"{option}: the kernel has no {what} {unknown!r}; it has {', '.join(sorted(names)) or 'none'}"
        )
    return pairs


def _size(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise CommandError(f"--size: {name} is a whole number of 1 or more, got {text!r}")
    return int(text)


def _number(name: str, text: str) -> float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise CommandError(f"--scalar: {name} is a number, got {text!r}")


def _pairs(texts: Sequence[str], option: str) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CommandError(f"{option} is written NAME=VALUE, got {text!r}")
        pairs.append((name, value))
    return pairs
