"""Prints a kernel's IR in an action; the options are those of ``pypto.build generate``, but for the outputs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pypto.build.entry import load_entry
from pypto.build.errors import BuildError, SampleError
from pypto.build.generate import lowered_program, specialized_program
from pypto.build.options import coerce_options
from pypto.build.specialize import parse_tensor_text, specialize
from pypto.ir.printer import print_program
from pypto.language.errors import CompileError, OutsideKernelError
from pypto.language.signature import Signature
from pypto.language.source import collect
from pypto.runtime._artifact_sources import following_links


def main() -> int:
    ask = argparse.ArgumentParser()
    for name in ("module", "entry", "backend-type", "execution-mode"):
        ask.add_argument(f"--{name}", required=True)
    ask.add_argument("--import-root", type=Path, action="append", default=[])
    ask.add_argument("--tensor", action="append", default=[])
    ask.add_argument("--option", action="append", default=[])
    ask.add_argument("--parsed", type=Path, required=True)
    ask.add_argument("--lowered", type=Path, required=True)
    given = ask.parse_args()
    options: dict[str, object] = dict(text.split("=", 1) for text in given.option)
    options |= {"backend_type": given.backend_type, "execution_mode": given.execution_mode}
    try:
        tensors = {name: parse_tensor_text(name, text) for name, text in (pair.split("=", 1) for pair in given.tensor)}
        entry = load_entry(given.module, given.entry, given.import_root)
        with following_links():
            closure = collect(entry)
            specialization = specialize(entry.qualname, Signature.of(entry).params, tensors, coerce_options(options))
            given.parsed.write_text(print_program(specialized_program(closure, specialization)), encoding="utf-8")
            given.lowered.write_text(print_program(lowered_program(closure, specialization)), encoding="utf-8")
    except (BuildError, SampleError, CompileError, OutsideKernelError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
