"""Command-line form of the build steps: ``python -m pypto.build generate|assemble|compile|seal``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.build.errors import BuildError, SampleError

if TYPE_CHECKING:
    _Steps = argparse._SubParsersAction[argparse.ArgumentParser]
    from pypto.toolchain import Toolchain, ToolchainDescriptor

_EXIT = """\
exit status: 0 done; 1 the step failed, for the reason on standard error, and --out is not complete; 2 the command line
is wrong.
"""

_EXAMPLES = {
    "generate": "--module kernels.decode --entry decode --import-root . \\\n"
    "      --backend-type Ascend910B --execution-mode sim --out gen --request request.json",
    "assemble": "--generated gen --descriptor toolchain.json --bindings bindings.json --out asm",
    "compile": "--generated gen --assembled asm --descriptor toolchain.json \\\n"
    "      --bindings bindings.json --out ready",
    "seal": "--request request.json --generated gen --ready ready \\\n"
    "      --descriptor toolchain.json --out decode.bundle",
}

_OVERVIEW = """\
Build one kernel step by step. A JIT call runs the same steps in one process; Bazel runs one action per step.

{examples}

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
        prog="python -m pypto.build",
        description=_OVERVIEW.format(examples="\n".join(map(_example, _EXAMPLES))),
        epilog=_EXIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    for add in (_add_generate, _add_assemble, _add_compile, _add_seal):
        add(steps)
    return parser


def _example(step: str) -> str:
    return f"  python -m pypto.build {step:<8} {_EXAMPLES[step]}"


def _add_step(steps: _Steps, name: str, text: str, description: str) -> argparse.ArgumentParser:
    return steps.add_parser(
        name,
        help=text,
        description=description,
        epilog=f"example:\n{_example(name)}\n\n{_EXIT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_generate(steps: _Steps) -> None:
    step = _add_step(
        steps,
        "generate",
        "kernel source -> .pto, wrappers, orchestration and kernel_config.json",
        "Import a kernel's module and write its generated directory and its request record.\n"
        "Needs no tools and no NumPy.",
    )
    step.add_argument("--module", required=True, help="module of the kernel, such as kernels.decode")
    step.add_argument("--entry", required=True, help="name of the @pl.jit function in that module")
    step.add_argument(
        "--import-root",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="folder to import from; repeatable; besides, only pypto and the standard library can be imported",
    )
    step.add_argument("--backend-type", required=True, metavar="NAME", help="Ascend910B (A2/A3) or Ascend950 (A5)")
    step.add_argument("--execution-mode", required=True, metavar="MODE", help="sim or device")
    step.add_argument(
        "--tensor",
        type=_pair,
        action="append",
        default=[],
        metavar="NAME=DTYPE[DIMS]",
        help="metadata of a tensor parameter whose annotation has no shape, such as x=FP16[128,64]; repeatable",
    )
    step.add_argument(
        "--option", type=_pair, action="append", default=[], metavar="KEY=VALUE", help="a compile option; repeatable"
    )
    step.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="generated directory to write; absent or empty"
    )
    step.add_argument("--request", type=Path, required=True, metavar="FILE", help="request record to write (JSON)")


def _add_assemble(steps: _Steps) -> None:
    step = _add_step(
        steps,
        "assemble",
        ".pto -> C++ of each kernel (ptoas, repaired and normalised)",
        "Run ptoas on every kernel of a generated directory. Writes ptoas/<kernel>.cpp below --out.",
    )
    step.add_argument("--generated", type=Path, required=True, metavar="DIR", help="generated directory")
    _add_tools(step)
    step.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write; absent or empty")
    step.add_argument("--jobs", type=_positive, metavar="N", help="kernels at a time; default: number of CPUs")


def _add_compile(steps: _Steps) -> None:
    step = _add_step(
        steps,
        "compile",
        "C++ -> shared objects and binary_manifest.json: the READY directory",
        "Compile every kernel and the orchestration. Writes the complete READY directory, generated files included.",
    )
    step.add_argument("--generated", type=Path, required=True, metavar="DIR", help="generated directory")
    step.add_argument("--assembled", type=Path, required=True, metavar="DIR", help="what `assemble` wrote")
    _add_tools(step)
    step.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="READY directory to write; absent or empty"
    )
    step.add_argument("--jobs", type=_positive, metavar="N", help="compilers at a time; default: number of CPUs")


def _add_seal(steps: _Steps) -> None:
    step = _add_step(
        steps,
        "seal",
        "READY directories -> one sealed bundle",
        "Pack specializations into a bundle. --request, --generated and --ready are given once per specialization,\n"
        "in the same order.",
    )
    step.add_argument("--request", type=Path, action="append", required=True, metavar="FILE", help="request record")
    step.add_argument(
        "--generated", type=Path, action="append", required=True, metavar="DIR", help="generated directory"
    )
    step.add_argument("--ready", type=Path, action="append", required=True, metavar="DIR", help="READY directory")
    step.add_argument("--descriptor", type=Path, required=True, metavar="FILE", help="toolchain descriptor (JSON)")
    step.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="bundle directory to write; absent or empty"
    )
    step.add_argument("--digest", type=Path, metavar="FILE", help="write the bundle's digest there; default: print it")
    step.add_argument(
        "--cache-identity",
        choices=("build", "content"),
        default="build",
        help="identity policy; content needs a descriptor from `pypto.toolchain describe --cache-identity content`",
    )
    step.add_argument("--cache-strict", choices=("0", "1"), default="0", help="1 needs such a descriptor as well")
    step.add_argument("--cache-epoch", default="", metavar="NAME", help="a separate set of keys; default: none")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one step; returns the exit status. What the user can mend is printed without a traceback."""
    arguments = make_parser().parse_args(argv)
    try:
        _STEPS[arguments.step](arguments)
    except _user_errors() as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _user_errors() -> tuple[type[Exception], ...]:
    from pypto.language.errors import CompileError, OutsideKernelError
    from pypto.runtime.kernel_compiler import CompilerOutputError
    from pypto.toolchain.errors import ToolchainError

    return (
        BuildError,
        SampleError,
        CompileError,
        OutsideKernelError,
        ToolchainError,
        CompilerOutputError,
    )


def _generate(arguments: argparse.Namespace) -> None:
    from pypto.build.entry import load_entry
    from pypto.build.generate import generate, pack_sources, request_record
    from pypto.build.options import coerce_options
    from pypto.build.specialize import parse_tensor_text, specialize
    from pypto.language.signature import Signature
    from pypto.language.source import collect
    from pypto.runtime._artifact_sources import UnsupportedArtifactInput, following_links

    options = coerce_options(
        {
            **_once("--option", arguments.option),
            "backend_type": arguments.backend_type,
            "execution_mode": arguments.execution_mode,
        }
    )
    tensors = {name: parse_tensor_text(name, text) for name, text in _once("--tensor", arguments.tensor).items()}
    entry = load_entry(arguments.module, arguments.entry, arguments.import_root)
    # Whoever runs steps one by one, Bazel in the first place, hands every input over as a link.
    with following_links():
        closure = collect(entry)
        specialization = specialize(entry.qualname, Signature.of(entry).params, tensors, options)
        program = generate(closure, specialization, arguments.out)
        try:
            pack_sources(program, arguments.out)
        except UnsupportedArtifactInput as error:
            raise BuildError(f"the hand-written source of a kernel cannot be packed: {error}") from None
    arguments.request.parent.mkdir(parents=True, exist_ok=True)
    arguments.request.write_bytes(request_record(closure, specialization).to_bytes())


def _assemble(arguments: argparse.Namespace) -> None:
    from pypto.build.assemble import assemble

    assemble(arguments.generated, _toolchain(arguments, ("ptoas",)), arguments.out, jobs=arguments.jobs)


def _compile(arguments: argparse.Namespace) -> None:
    from pypto.build.compile_ import compile_

    toolchain = _toolchain(arguments, ("gcc", "isa"))
    unknown = compile_(arguments.generated, arguments.assembled, toolchain, arguments.out, jobs=arguments.jobs)
    if unknown:
        raise BuildError(
            f"the compiler read files that are no input of this step: {', '.join(unknown)}; what it made of them must "
            "not be shared, so include them by a path inside the kernel's own sources"
        )


def _seal(arguments: argparse.Namespace) -> None:
    from pypto._identity.policy import IdentitySettings
    from pypto.build.seal import Specialized, seal

    counts = {len(arguments.request), len(arguments.generated), len(arguments.ready)}
    if len(counts) > 1:
        raise BuildError(
            f"seal needs as many --request as --generated and --ready, got {len(arguments.request)}, "
            f"{len(arguments.generated)} and {len(arguments.ready)}"
        )
    inputs = [
        Specialized(request, generated, ready)
        for request, generated, ready in zip(arguments.request, arguments.generated, arguments.ready, strict=True)
    ]
    settings = IdentitySettings(arguments.cache_identity, arguments.cache_strict == "1", arguments.cache_epoch)
    digest = seal(inputs, _descriptor(arguments.descriptor), arguments.out, settings)
    if arguments.digest is None:
        print(digest)
    else:
        arguments.digest.parent.mkdir(parents=True, exist_ok=True)
        arguments.digest.write_text(f"{digest}\n", encoding="ascii")


_STEPS = {"generate": _generate, "assemble": _assemble, "compile": _compile, "seal": _seal}


def _once(flag: str, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise BuildError(f"{flag} {name} is given twice")
        values[name] = value
    return values


def _descriptor(path: Path) -> ToolchainDescriptor:
    from pypto.toolchain import ToolchainDescriptor

    try:
        data = path.read_bytes()
    except OSError as error:
        raise BuildError(f"toolchain descriptor {path} cannot be read: {error.strerror}") from None
    return ToolchainDescriptor.from_bytes(data, f"toolchain descriptor {path}")


def _toolchain(arguments: argparse.Namespace, needed: Sequence[str]) -> Toolchain:
    from pypto.toolchain import Bindings, Toolchain
    from pypto.toolchain.descriptor import ALL_ROOTS, ROOTS

    given = _once("--root", arguments.root)
    for name in given:
        if name not in ALL_ROOTS:
            raise BuildError(f"--root {name}: the roots are {', '.join(ALL_ROOTS)}")
    roots = dict(Bindings.load(arguments.bindings).roots) if arguments.bindings else {}
    roots |= {name: Path(folder) for name, folder in given.items()}
    for name in needed:
        if name not in roots:
            raise BuildError(f"this step needs the root {name}: give --root {name}=DIR or --bindings FILE")
        if not roots[name].is_dir():
            raise BuildError(f"the folder of root {name} does not exist: {roots[name]}")
    # A step is given only the roots it uses; the others lead nowhere.
    absent = Path("/nonexistent")
    descriptor = _descriptor(arguments.descriptor)
    bindings = Bindings({name: roots.get(name, absent) for name in (*ROOTS, *descriptor.sets)})
    return Toolchain(descriptor, bindings)
