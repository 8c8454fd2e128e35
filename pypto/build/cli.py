"""Command-line form of the build steps: ``python -m pypto.build generate|assemble|compile|seal``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pypto.build.errors import BuildError

_OVERVIEW = """\
Build one kernel step by step. A JIT call runs the same steps in one process; Bazel runs one action per step.

  python -m pypto.build generate --module kernels.decode --entry decode --import-root . \\
      --backend-type Ascend910B --execution-mode sim --out gen --request request.json
  python -m pypto.build assemble --generated gen --descriptor toolchain.json --bindings bindings.json --out asm
  python -m pypto.build compile  --generated gen --assembled asm --descriptor toolchain.json \\
      --bindings bindings.json --out ready
  python -m pypto.build seal     --request request.json --generated gen --ready ready \\
      --descriptor toolchain.json --out decode.bundle

`python -m pypto.toolchain show` prints where the descriptor and the bindings of the installed tools are.
"""


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def _add_tools(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--descriptor", type=Path, required=True, metavar="FILE", help="toolchain descriptor (JSON)")
    parser.add_argument(
        "--bindings", type=Path, metavar="FILE", help="JSON that maps the descriptor's root names to folders"
    )
    parser.add_argument(
        "--root",
        type=_pair,
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="folder of one root (gcc, isa, ptoas); may be relative, repeatable, wins over --bindings",
    )


def make_parser() -> argparse.ArgumentParser:
    """The parser of all four steps."""
    parser = argparse.ArgumentParser(
        prog="python -m pypto.build", description=_OVERVIEW, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")

    generate = steps.add_parser(
        "generate",
        help="kernel source -> .pto, wrappers, orchestration and kernel_config.json",
        description=(
            "Import a kernel's module and write its generated directory and its request record. "
            "Needs no tools and no NumPy."
        ),
    )
    generate.add_argument("--module", required=True, help="module of the kernel, such as kernels.decode")
    generate.add_argument("--entry", required=True, help="name of the @pl.jit function in that module")
    generate.add_argument(
        "--import-root",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="folder to import from; repeatable; besides, only pypto and the standard library can be imported",
    )
    generate.add_argument("--backend-type", required=True, metavar="NAME", help="Ascend910B (A2/A3) or Ascend950 (A5)")
    generate.add_argument("--execution-mode", required=True, metavar="MODE", help="sim or device")
    generate.add_argument(
        "--tensor",
        type=_pair,
        action="append",
        default=[],
        metavar="NAME=DTYPE[DIMS]",
        help="metadata of a tensor parameter whose annotation has no shape, such as x=FP16[128,64]; repeatable",
    )
    generate.add_argument(
        "--option", type=_pair, action="append", default=[], metavar="KEY=VALUE", help="a compile option; repeatable"
    )
    generate.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="generated directory to write; absent or empty"
    )
    generate.add_argument("--request", type=Path, required=True, metavar="FILE", help="request record to write (JSON)")

    assemble = steps.add_parser(
        "assemble",
        help=".pto -> C++ of each kernel (ptoas, repaired and normalised)",
        description="Run ptoas on every kernel of a generated directory. Writes ptoas/<kernel>.cpp below --out.",
    )
    assemble.add_argument("--generated", type=Path, required=True, metavar="DIR", help="generated directory")
    _add_tools(assemble)
    assemble.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write; absent or empty")
    assemble.add_argument("--jobs", type=_positive, metavar="N", help="kernels at a time; default: number of CPUs")

    compile_ = steps.add_parser(
        "compile",
        help="C++ -> shared objects and binary_manifest.json: the READY directory",
        description=(
            "Compile every kernel and the orchestration. Writes the complete READY directory, generated files included."
        ),
    )
    compile_.add_argument("--generated", type=Path, required=True, metavar="DIR", help="generated directory")
    compile_.add_argument("--assembled", type=Path, required=True, metavar="DIR", help="what `assemble` wrote")
    _add_tools(compile_)
    compile_.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="READY directory to write; absent or empty"
    )
    compile_.add_argument("--jobs", type=_positive, metavar="N", help="compilers at a time; default: number of CPUs")

    seal = steps.add_parser(
        "seal",
        help="READY directories -> one sealed bundle",
        description=(
            "Pack specializations into a bundle. --request, --generated and --ready are given once per specialization, "
            "in the same order."
        ),
    )
    seal.add_argument("--request", type=Path, action="append", required=True, metavar="FILE", help="request record")
    seal.add_argument(
        "--generated", type=Path, action="append", required=True, metavar="DIR", help="generated directory"
    )
    seal.add_argument("--ready", type=Path, action="append", required=True, metavar="DIR", help="READY directory")
    seal.add_argument("--descriptor", type=Path, required=True, metavar="FILE", help="toolchain descriptor (JSON)")
    seal.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="bundle directory to write; absent or empty"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one step; returns the exit status. User errors are printed without a traceback."""
    arguments = make_parser().parse_args(argv)
    try:
        _run(arguments)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(arguments: argparse.Namespace) -> None:
    raise SystemExit(f"pypto.build {arguments.step}: not available yet")
