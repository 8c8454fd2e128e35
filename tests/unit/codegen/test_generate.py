"""The generated directory: its files, their text, and that they are the same everywhere."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sample_programs import program

from pypto._identity.records import parse_canonical_json
from pypto.codegen.generate import generate
from pypto.ir.errors import IRError
from pypto.ir.nodes import Loc

HERE = Path(__file__).parent
PROJECT = HERE.parents[2]

DIGEST_SCRIPT = """
import hashlib, sys
sys.path[:0] = [{project!r}, {here!r}]
from sample_programs import program
from pypto.codegen.generate import generate
files = generate(program(), "Ascend910B", "sim")
print(hashlib.sha256(b"".join(n.encode() + b"\\0" + d for n, d in sorted(files.items()))).hexdigest())
"""


def files() -> dict[str, bytes]:
    return generate(program(), "Ascend910B", "sim")


def test_what_only_the_simulator_runs_is_refused_for_devices() -> None:
    made = program()
    (add,) = (op for op in made.functions["adder"].body.walk() if op.name == "tile.add")
    generate(made, "Ascend910B", "device")
    add.name = "tile.fmod"
    assert b"pypto::tiles::binary<pypto::tiles::Fmod>" in generate(made, "Ascend910B", "sim")["kernel_config.json"]
    with pytest.raises(IRError, match=r"on devices: pl.fmod .*has TFMOD, but ptoas 0.1.1 cannot") as caught:
        generate(made, "Ascend910B", "device")
    assert caught.value.loc == Loc("adder", 7, 8)


def test_files_of_the_generated_directory() -> None:
    assert list(files()) == [
        "kernel_config.json",
        "kernels/aiv/adder.cpp",
        "orchestration/main.cpp",
        "ptoas/adder.pto",
    ]


def test_configuration() -> None:
    config = parse_canonical_json(files()["kernel_config.json"], "kernel_config.json")
    (kernel,) = config["kernels"]
    assert {k: v for k, v in config.items() if k != "kernels"} == {
        "schema": 1,
        "entry": "main",
        "build_kind": "single_chip",
        "runtime": "host_build_graph",
        "runtime_abi": 1,
        "backend_type": "Ascend910B",
        "execution_mode": "sim",
        "params": [
            {"name": "x", "kind": "tensor", "direction": "in", "dtype": "FP32", "shape": ["S", 64]},
            {"name": "y", "kind": "tensor", "direction": "in", "dtype": "FP32", "shape": ["S", 64]},
            {"name": "count", "kind": "scalar", "direction": "in", "dtype": "INT32"},
            {"name": "o", "kind": "tensor", "direction": "out", "dtype": "FP32", "shape": ["S", 64]},
        ],
        "returns": [3],
        "orchestration": {"source": "orchestration/main.cpp", "binary": "prebuilt/orchestration/main.so"},
    }
    assert {k: v for k, v in kernel.items() if k not in ("repairs", "ops")} == {
        "id": 0,
        "name": "adder",
        "core": "aiv",
        "pto": "ptoas/adder.pto",
        "cpp": "ptoas/adder.cpp",
        "source": "kernels/aiv/adder.cpp",
        "binary": "prebuilt/kernels/adder.so",
    }
    place = {"function": "adder", "line": 7, "column": 8}
    assert kernel["ops"] == [{"op": f"tile.{n}", **place} for n in ("load", "load", "add", "store")]


def test_orchestration_text() -> None:
    text = files()["orchestration/main.cpp"].decode()
    body = text[text.index("  const int64_t n1") : text.index("PYPTO_ORCHESTRATION")]
    assert body == (
        "  const int64_t n1 = p2;\n"
        "  const int64_t n2 = pypto::floordiv(n1, 2);\n"
        "  pypto::Tensor t3 = o.create(pypto::DType::FP32, {n2, 64});\n"
        "  int64_t n4{n1};\n"
        "  for (int64_t i5 = 0; i5 < 2; i5 += 1) {\n"
        "    o.submit(0).in(p0).in(p1).i64(p2).out(t3).i64(p0.dim(0)).i64(p1.dim(0)).i64(t3.dim(0)).at(9);\n"
        "    const int64_t n6 = (n4 - n2);\n"
        "    n4 = n6;\n"
        "  }\n"
        "  t3.release();\n"
        "  const bool n7 = (n4 > 0);\n"
        "  if (n7) {\n"
        "    o.submit(0).in(p0).in(p1).i64(p2).out(p3).i64(p0.dim(0)).i64(p1.dim(0)).i64(p3.dim(0)).at(9);\n"
        "  }\n"
        "}\n\n"
    )


def test_wrapper_computes_what_stays_constant() -> None:
    text = files()["kernels/aiv/adder.cpp"].decode()
    assert '#include "ptoas/adder.cpp"' in text
    assert "  const int64_t a2 = args.value<int64_t>(2);\n" in text
    # Tensors, the loop's bound, the slot of a length that changes.
    call = [line.strip(" ,") for line in text[text.index("adder_kernel(") :].splitlines()[1:6]]
    assert call == [
        "args.pointer<float>(0)",
        "args.pointer<float>(1)",
        "args.pointer<float>(3)",
        "pypto::narrow(a2)",
        "int32_t{}",
    ]


def test_program_is_not_changed() -> None:
    made = program()
    assert generate(made, "Ascend910B", "sim") == generate(made, "Ascend910B", "sim")


@pytest.mark.parametrize(
    ("flags", "seed"), [((), "0"), ((), "1"), (("-O",), "random")], ids=["seed0", "seed1", "optimised"]
)
def test_bytes_do_not_depend_on_the_process(flags: tuple[str, ...], seed: str, tmp_path: Path) -> None:
    script = DIGEST_SCRIPT.format(project=str(PROJECT), here=str(HERE))
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, *flags, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    own = hashlib.sha256(b"".join(n.encode() + b"\0" + d for n, d in sorted(files().items()))).hexdigest()
    assert done.stdout.strip() == own


def test_configuration_has_no_floats() -> None:
    def walk(value: object) -> None:
        assert not isinstance(value, float)
        for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(child)

    walk(json.loads(files()["kernel_config.json"]))
