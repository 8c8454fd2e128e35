"""Command-line form: look at a bundle and check it. Needs no compiler and writes nothing."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from pypto.bundle.errors import BundleDamaged, BundleIncompatible
from pypto.bundle.reading import Bundle, BundleArtifact, open_bundle

_OVERVIEW = """\
Look at sealed bundles and check them.

  python -m pypto.bundle show   decode_a2a3.bundle          what is in it, for what target, made by what
  python -m pypto.bundle show   decode_a2a3.bundle --json   the same for programs
  python -m pypto.bundle verify decode_a2a3.bundle          check every byte, print the bundle's digest

A bundle is executable code. `verify` shows that it is whole, not that its maker can be trusted: keep the digest that it
prints, and open the bundle with `pypto.import_bundle(path, digest="...")`, which refuses any other.
"""

_EXIT = """\
Exit status: 0 whole; 1 damaged (the file is named on standard error) or not readable by this pypto; 2 wrong usage.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        bundle = open_bundle(arguments.path, getattr(arguments, "digest", None))
        if arguments.command == "verify":
            bundle.verify()
            print(bundle.digest)
        elif arguments.json:
            print(json.dumps(_record(bundle), indent=2, sort_keys=True))
        else:
            print("\n".join(_lines(bundle)))
    except (BundleDamaged, BundleIncompatible) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pypto.bundle",
        description=_OVERVIEW,
        epilog=_EXIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    show = commands.add_parser("show", help="print what a bundle holds", description="Print what a bundle holds.")
    show.add_argument("path", metavar="PATH", help="bundle directory, such as bazel-bin/kernels/decode_a2a3.bundle")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    verify = commands.add_parser(
        "verify",
        help="check every byte of a bundle and print its digest",
        description="Check bundle.json, every manifest and every file, and that nothing is missing or extra.",
        epilog=_EXIT,
    )
    verify.add_argument("path", metavar="PATH", help="bundle directory")
    verify.add_argument("--digest", metavar="SHA256", help="also fail when the bundle has another digest than this")
    return parser


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
