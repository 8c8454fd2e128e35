"""The IR of a kernel is the same text under every supported Python, -O and any hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[2]

_PROGRAM = """
import hashlib, json, sys
from kernel_texts import module
from pypto.ir.printer import print_program
from pypto.language.lower import lower
from pypto.language.source import collect

names = module(open(sys.argv[1], encoding="utf-8").read(), "<stable>")
closure = collect(names["main"])
print(json.dumps(closure.record(), sort_keys=True))
print(print_program(lower(closure, {}), locations=True))
"""

_KERNEL = """
S = pl.dynamic("S")
SCALE = 1.0 / math.sqrt(64)

@incore
# a comment between decorator and function
def scores(
    q: pl.Tensor[[16, 64], pl.FP16],
    k: pl.Tensor[[S, 64], pl.FP16], start: int, count: int,
    out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
):
    '''Wide letters ß→ü before a column.'''
    keys = pl.load(
        k, [start, 0], [32, 64],
        valid_shape=[count, 64],
    )
    pl.store(pl.matmul(q, keys, b_trans=True), [0, 0], out); name = "ß→ü"; other = count + 1

@entry
def main(
    q: pl.Tensor[[16, 64], pl.FP16], k: pl.Tensor[[S, 64], pl.FP16], n: int, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    part = pl.create_tensor([16, 32], dtype=pl.FP32)
    for i in pl.range((n + 31) // 32):
        m = pl.min(32, n - i * 32)
        scores(q, k, i * 32, m, part)
        with (
            pl.at(level=pl.Level.CORE_GROUP)
        ):
            t = pl.load(part, [0, 0], [16, 32], valid_shape=[16, m]) * SCALE
            for j in pl.range(3):
                if j > 1 and not m == 4:
                    t = pl.exp(t)
                else:
                    t = (t +
                         1.0)
            out[0:16, 0:m] = t
    return out
"""

# Spliced functions, a loop that mixes kinds of work, whole tensors that are divided, carried tensors.
_WIDE_KERNEL = """
M = pl.dynamic("M")

@inline
def share(t):
    p = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
    return pl.row_expand_div(p, pl.row_sum(p))

@entry
def main(
    a: pl.Tensor[[M, 512], pl.FP32], b: pl.Tensor[[512, 96], pl.FP32], q: pl.Tensor[[64, 64], pl.FP32], n: int,
    out: pl.Out[pl.Tensor[[M, 96], pl.FP32]], other: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    k = q[0, 1]
    while n > 3:
        n = n // 2
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(q, [0, 0], [64, 64])
        for i in pl.range(n):
            t = share(pl.matmul(t, t) * 0.1) + q
            if i > 1:
                t = t * k
        other[:] = t
    with pl.at(level=pl.Level.CORE_GROUP):
        s = pl.matmul(a, b)
        for i in pl.range(n):
            s = share(s) + 1.0
        out[:] = pl.col_expand_sub(s, pl.col_min(s))
    return out
"""


def _interpreters() -> list[str]:
    found = [sys.executable]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in (11, 12, 13):
        if sys.version_info[1] != minor:
            found += [str(p) for p in sorted(versions.glob(f"3.{minor}.*/bin/python"))[:1]]
    return found


@pytest.fixture(scope="module", params=["scores", "share"])
def kernel_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stable") / "kernel.txt"
    path.write_text({"scores": _KERNEL, "share": _WIDE_KERNEL}[request.param], encoding="utf-8")
    return path


def _run(python: str, kernel_file: Path, *flags: str, seed: str = "0") -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_HERE)]),
        "PYTHONHASHSEED": seed,
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C",
    }
    command = [python, *flags, "-c", _PROGRAM, str(kernel_file)]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_text_is_equal_everywhere(kernel_file: Path) -> None:
    expected = _run(sys.executable, kernel_file)
    assert "tile.matmul" in expected
    assert "// scores:13:13" in expected or "// share:3:8" in expected
    for python in _interpreters():
        assert _run(python, kernel_file, "-O", seed="1") == expected, python
    assert _run(sys.executable, kernel_file, "-OO", seed="random") == expected
