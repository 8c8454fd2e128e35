"""ptoas names types after pointer values; what is kept of its output must not show it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import cases_memory
import pytest

from pypto.build.assemble import assemble_kernel
from pypto.codegen.incore import print_kernel
from pypto.codegen.rewrites import prepared
from pypto.toolchain import Toolchain
from pypto.toolchain.tools import private_root, ptoas_command

RUNS = int(os.environ.get("PYPTO_TEST_PTOAS_RUNS", "6"))


@pytest.fixture(scope="module")
def largest() -> tuple[bytes, dict]:
    """The case with the most views of global memory: text and configuration entry."""
    kernels = [print_kernel(prepared(case.function())) for case in cases_memory.cases()]
    chosen = max(kernels, key=lambda kernel: kernel.pto.count("pto.subview"))
    return chosen.pto.encode(), {"name": chosen.symbol, "repairs": chosen.repairs}


def test_every_run_of_ptoas_gives_the_same_bytes(largest: tuple[bytes, dict], toolchain: Toolchain) -> None:
    """50 runs with PYPTO_TEST_PTOAS_RUNS=50."""
    pto, entry = largest
    with ThreadPoolExecutor(2) as pool:
        outputs = set(pool.map(lambda _: assemble_kernel(pto, entry, toolchain), range(RUNS)))
    assert len(outputs) == 1
    assert b"GT_0 " in outputs.pop()


def test_raw_output_differs(largest: tuple[bytes, dict], toolchain: Toolchain) -> None:
    """If this fails, ptoas has become reproducible, and renumbering may go."""
    raw = set()
    for _ in range(3):
        with private_root(toolchain) as root:
            (root.work / "k.pto").write_bytes(largest[0])
            root.run(ptoas_command(toolchain, "w/k.pto", "w/k.cpp"), "assemble k")
            raw.add((root.work / "k.cpp").read_bytes())
    assert len(raw) > 1
