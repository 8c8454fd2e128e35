#!/usr/bin/env python3
"""What a task of a graph costs beside its kernel: submission, dependencies and dispatch, for both runtimes.

    python tests/benchmarks/task_cost.py [--repetitions N]

Compiles `task_cost.cpp` with the installed toolchain and the flags of an orchestration, and runs graphs of a kernel
that does nothing. Times are the best of N runs in microseconds: of the whole run, and of it by task. Graphs of two or
more independent tasks include the start and the end of the threads that run them.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pypto.toolchain
from pypto.toolchain.tools import gcc_orchestration, private_root

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20, metavar="N", help="runs of each graph (default 20)")
    options = parser.parse_args()
    toolchain = pypto.toolchain.current()
    command = gcc_orchestration(toolchain, f"w/{_SOURCE.name}", "w/task_cost.so")
    with tempfile.TemporaryDirectory() as folder:
        with private_root(toolchain) as root:
            shutil.copy(_SOURCE, root.work)
            root.run(command, "compile the benchmark")
            library = shutil.copy(root.work / "task_cost.so", folder)
        print(f"load average {os.getloadavg()[0]:.2f}")
        print(f"{'runtime':26}  {'tasks are':20} {'tasks':>6} {'run us':>12} {'task us':>10}", flush=True)
        return int(ctypes.CDLL(library).task_cost(options.repetitions))


if __name__ == "__main__":
    sys.exit(main())
