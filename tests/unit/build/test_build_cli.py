"""The command-line form of the build steps, as Bazel's actions run it: isolated, without site-packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE_PARENT = Path(__file__).resolve().parents[3]

ADD = """
import pypto.language as pl


@pl.jit
def add(a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(a, [0, 0], [16, 64]) + pl.load(b, [0, 0], [16, 64]), [0, 0], out)
    return out


@pl.jit
def copy(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)
    return out


def plain():
    pass
"""

GENERATE = ("--backend-type", "Ascend910B", "--execution-mode", "sim")


def run(*arguments: str | Path, cwd: Path, flags: tuple[str, ...] = (), umask: int = 0o022, **env: str):
    code = (
        "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('pypto.build', run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-I", "-S", "-B", *flags, "-c", code, PACKAGE_PARENT, *map(str, arguments)],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **env},
        umask=umask,
        capture_output=True,
        text=True,
        timeout=60,
    )


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    return {str(p.relative_to(root)): (p.stat().st_mode, p.read_bytes()) for p in root.rglob("*") if p.is_file()}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    (folder / "ops").mkdir(parents=True)
    (folder / "ops" / "add.py").write_text(ADD)
    return folder


def test_generate_writes_the_directory_and_the_request_record(sources: Path, tmp_path: Path) -> None:
    done = run(
        *("generate", "--module", "ops.add", "--entry", "add", "--import-root", "sources", *GENERATE),
        *("--out", "out/gen", "--request", "out/request.json"),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    config = json.loads((tmp_path / "out/gen/kernel_config.json").read_bytes())
    (kernel,) = config["kernels"]
    assert (config["entry"], config["execution_mode"]) == ("add", "sim")
    assert set(tree(tmp_path / "out/gen")) == {
        "kernel_config.json",
        config["orchestration"]["source"],
        kernel["pto"],
        kernel["source"],
    }
    request = json.loads((tmp_path / "out/request.json").read_bytes())
    assert request["entry"] == "add"
    assert request["specialization"]["options"]["backend_type"] == "Ascend910B"
    assert not list(sources.rglob("*.pyc"))


def test_options_reach_what_is_generated(sources: Path, tmp_path: Path) -> None:
    """As `options` of a `pypto_kernel` gives them."""
    done = run(
        *("generate", "--module", "ops.add", "--entry", "add", "--import-root", "sources", *GENERATE),
        *("--option", "runtime=tensormap_and_ringbuffer", "--option", "memory_planner=PTOAS"),
        *("--out", "out/gen", "--request", "out/request.json"),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "out/gen/kernel_config.json").read_bytes())["runtime"] == "tensormap_and_ringbuffer"
    options = json.loads((tmp_path / "out/request.json").read_bytes())["specialization"]["options"]
    assert (options["runtime"], options["memory_planner"]) == ("tensormap_and_ringbuffer", "PTOAS")


def test_equal_bytes_whatever_the_place_umask_seed_and_optimisation(sources: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "another" / "place"
    elsewhere.mkdir(parents=True)
    arguments = ("generate", "--module", "ops.add", "--entry", "add", "--import-root", sources, *GENERATE)
    first = run(*arguments, "--out", "gen", "--request", "request.json", cwd=tmp_path)
    second = run(
        *(*arguments, "--out", "gen", "--request", "request.json"),
        cwd=elsewhere,
        flags=("-O",),
        umask=0o077,
        PYTHONPATH="/nonexistent",
        LD_LIBRARY_PATH="/nonexistent",
        LC_ALL="C",
        TZ="Asia/Tokyo",
    )
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert tree(tmp_path / "gen") == tree(elsewhere / "gen")
    assert (tmp_path / "request.json").read_bytes() == (elsewhere / "request.json").read_bytes()


def test_tensors_without_a_declared_shape(sources: Path, tmp_path: Path) -> None:
    arguments = ("generate", "--module", "ops.add", "--entry", "copy", "--import-root", sources, *GENERATE)
    outputs = ("--out", "gen", "--request", "request.json")
    without = run(*arguments, *outputs, cwd=tmp_path)
    assert without.returncode == 1
    assert "parameter 'x' of copy has no shape in its annotation" in without.stderr
    given = run(*arguments, *outputs, "--tensor", "x=FP16[16,64]", "--tensor", "out=FP16[16,64]", cwd=tmp_path)
    assert given.returncode == 0, given.stderr
    parameters = json.loads((tmp_path / "request.json").read_bytes())["specialization"]["parameters"]
    assert [(p["dtype"], p["shape"]) for p in parameters] == [("FP16", [16, 64])] * 2


@pytest.mark.parametrize(
    ("module", "entry", "message"),
    [
        ("ops.absent", "add", "there is no module 'ops.absent' in the import roots (sources)"),
        ("ops.add", "absent", "module ops.add has no 'absent'; its @pl.jit functions: add, copy"),
        ("ops.add", "plain", "ops.add.plain is a function, not a @pl.jit function; those are: add, copy"),
        ("ops-add", "add", "--module is a dotted module name such as kernels.decode, got 'ops-add'"),
        ("ops.greedy", "add", "importing ops.greedy needs 'numpy', which a build does not offer"),
        ("ops.greedy", "add", "A module of kernels goes into the `deps` of pypto_kernel (or below an --import-root)"),
        ("ops.broken", "add", "module ops.broken cannot be imported: SyntaxError: "),
        (
            "ops.early",
            "add",
            "module ops.early cannot be imported: TypeError: @pl.jit.host takes no option 'level'",
        ),
        ("ops.early", "add", "sources/ops/early.py:4)"),
    ],
)
def test_a_wrong_entry_is_one_line(sources: Path, tmp_path: Path, module: str, entry: str, message: str) -> None:
    (sources / "ops" / "greedy.py").write_text("import numpy\n")
    (sources / "ops" / "broken.py").write_text("def (:\n")
    (sources / "ops" / "early.py").write_text(
        "import pypto.language as pl\n\n\n@pl.jit.host(level=1)\ndef f():\n    pass\n"
    )
    done = run(
        *("generate", "--module", module, "--entry", entry, "--import-root", "sources", *GENERATE),
        *("--out", "gen", "--request", "request.json"),
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_kernel_is_the_users_diagnostic(sources: Path, tmp_path: Path) -> None:
    path = sources / "ops" / "add.py"
    path.write_text(ADD.replace("+ pl.load(b", "+ pl.lod(b"))
    done = run(
        *("generate", "--module", "ops.add", "--entry", "add", "--import-root", "sources", *GENERATE),
        *("--out", "gen", "--request", "request.json"),
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "ops/add.py:8:" in done.stderr
    assert "lod" in done.stderr
    assert not (tmp_path / "gen").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--backend-type", "A2", "--execution-mode", "sim"), "backend_type is Ascend910B or Ascend950, got 'A2'"),
        ((*GENERATE, "--option", "unroll=4"), "there is no compile option 'unroll'"),
        (
            (*GENERATE, "--option", "strategy=Default", "--option", "strategy=Default"),
            "--option strategy is given twice",
        ),
        ((*GENERATE, "--tensor", "x=[4]"), "tensor 'x' is written DTYPE[DIM,...]"),
        ((*GENERATE, "--tensor", "y=FP32[4]"), "add has no tensor parameter 'y'; its tensors are a, b, out"),
    ],
)
def test_wrong_options(sources: Path, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(
        *("generate", "--module", "ops.add", "--entry", "add", "--import-root", "sources", *arguments),
        *("--out", "gen", "--request", "request.json"),
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_step_says_which_root_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text("{}")
    done = run("assemble", "--generated", "gen", "--descriptor", "d.json", "--out", "asm", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip() == "this step needs the root ptoas: give --root ptoas=DIR or --bindings FILE"


def test_seal_takes_complete_triples(tmp_path: Path) -> None:
    done = run(
        *("seal", "--request", "a", "--request", "b", "--generated", "g", "--ready", "r"),
        *("--descriptor", "d", "--out", "x.bundle"),
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "seal needs as many --request as --generated and --ready, got 2, 1 and 1" in done.stderr
