"""Command-line form: look at a bundle, check it, copy it into a store. Needs no compiler."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any

from pypto._identity.records import is_digest
from pypto.bundle.errors import BundleDamaged, BundleIncompatible
from pypto.bundle.importing import ImportFailed, import_into_store
from pypto.bundle.reading import Bundle, BundleArtifact, open_bundle
from pypto.jit.artifact_cache.store import ArtifactStore

_OVERVIEW = """\
Look at sealed bundles, check them, and copy them into a kernel cache.

  python -m pypto.bundle show   decode_a2a3.bundle          what is in it, for what target, made by what
  python -m pypto.bundle show   decode_a2a3.bundle --json   the same for programs
  python -m pypto.bundle verify decode_a2a3.bundle          check every byte, print the bundle's digest
  python -m pypto.bundle import decode_a2a3.bundle --root CACHE_ROOT
                                                            publish its artifacts in the cache at CACHE_ROOT

A bundle is executable code. `verify` shows that it is whole, not that its maker can be trusted: keep the digest that it
prints, and open the bundle with `pypto.import_bundle(path, digest="...")`, which refuses any other.
"""

_EXIT = """\
exit status: 0 whole; 1 damaged (the file is named on standard error), not readable by this pypto, or not taken by the
cache; 2 the command line is wrong.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    arguments = _parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path need not be text
    try:
        bundle = open_bundle(arguments.path, getattr(arguments, "digest", None))
        if arguments.command == "verify":
            bundle.verify()
            print(bundle.digest)
        elif arguments.command == "import":
            counts = import_into_store(bundle, ArtifactStore(arguments.root))
            print(f"{counts.published} artifacts published, {counts.present} were there already")
        elif arguments.json:
            print(json.dumps(_record(bundle), indent=2, sort_keys=True))
        else:
            print("\n".join(_lines(bundle)))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing more may be written when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (BundleDamaged, BundleIncompatible, ImportFailed, OSError) as error:
        print(f"pypto: error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m pypto.bundle", description=_OVERVIEW, epilog=_EXIT, formatter_class=raw
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str, description: str, example: str) -> argparse.ArgumentParser:
        epilog = f"example:\n  python -m pypto.bundle {name} {example}\n\n{_EXIT}"
        return commands.add_parser(name, help=text, description=description, epilog=epilog, formatter_class=raw)

    show = command(
        "show",
        "print what a bundle holds",
        "Print a bundle's digest, its target, what it was made with, and every kernel with its key. Reads bundle.json\n"
        "and the manifests, not the files.",
        "bazel-bin/kernels/decode_a2a3.bundle",
    )
    show.add_argument("path", metavar="PATH", help="bundle directory, such as bazel-bin/kernels/decode_a2a3.bundle")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    verify = command(
        "verify",
        "check every byte of a bundle and print its digest",
        "Check bundle.json, every manifest and every file, and that nothing is missing or extra.",
        "decode_a2a3.bundle",
    )
    import_ = command(
        "import",
        "publish the artifacts of a bundle in a kernel cache",
        "Publish every artifact that the cache does not have; what it has is checked and left alone. Any number of\n"
        "processes may import into one cache at the same time.",
        "decode_a2a3.bundle --root ~/.cache/pypto/jit",
    )
    import_.add_argument("--root", metavar="CACHE_ROOT", required=True, help="the cache; made when absent")
    for made in (verify, import_):
        made.add_argument("path", metavar="PATH", help="bundle directory")
        made.add_argument(
            "--digest", metavar="SHA256", type=_digest, help="also fail when the bundle has another digest than this"
        )
    return parser


def _digest(text: str) -> str:
    if not is_digest(text):
        raise argparse.ArgumentTypeError(f"expected 64 lower-case hexadecimal digits, got {text!r}")
    return text


def _record(bundle: Bundle) -> dict[str, Any]:
    description = bundle.description
    return {
        "path": str(bundle.path),
        "digest": bundle.digest,
        "environment": description.environment.to_record(),
        "target": description.target.to_record(),
        "schemas": description.schemas.to_record(),
        "entries": [
            {
                **entry.description.to_record(),
                "signature": entry.description.signature,
                "files": {stage: _files(artifact) for stage, artifact in _stages(entry.generated, entry.ready)},
            }
            for entry in bundle.entries
        ],
    }


def _files(artifact: BundleArtifact) -> list[dict[str, Any]]:
    return [record.to_record() for record in artifact.files()]


def _stages(generated: BundleArtifact, ready: BundleArtifact) -> list[tuple[str, BundleArtifact]]:
    return [("generated", generated), ("ready", ready)]


def _lines(bundle: Bundle) -> list[str]:
    target = bundle.description.target
    lines = [
        f"bundle       {bundle.path}",
        f"digest       {bundle.digest}",
        f"target       {target.backend_type}, {target.execution_mode}",
        f"runtime      {target.runtime}, ABI {target.runtime_abi}",
        f"environment  {bundle.description.environment.digest}",
    ]
    lines += [f"  {name:<17}{digest}" for name, digest in sorted(bundle.description.environment.components.items())]
    for entry in bundle.entries:
        lines += [
            "",
            f"kernel       {entry.description.signature}",
            f"  key              {entry.key.digest}",
            f"  source           {entry.key.source_digest}",
            f"  specialization   {entry.key.specialization_digest}",
        ]
        for stage, artifact in _stages(entry.generated, entry.ready):
            size = sum(record.size for record in artifact.files())
            lines.append(f"  {stage:<17}{len(artifact.files())} files, {size / 1024:.1f} KiB")
    return lines
