"""Hand-written kernels and orchestrations, compiled once per session by the machine's own C++ compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pypto._identity.records import canonical_json
from pypto.runtime import CompiledProgram
from pypto.runtime.binary_manifest import write_manifest
from pypto.runtime.kernel_config import CONFIG_FILE, MANIFEST_FILE, KernelConfig

SOURCES = Path(__file__).parent / "native"
HEADERS = Path(__file__).resolve().parents[3] / "pypto" / "runtime" / "native" / "include"
FLAGS = ["-std=c++23", "-Wall", "-Wextra", "-Werror", "-pthread", "-fno-gnu-unique", f"-I{HEADERS}"]

FAULT_OPS = [
    {"op": "tile.load", "function": "fault", "line": 2, "column": 8},
    {"op": "tile.add", "function": "fault", "line": 3, "column": 8},
    {"op": "tile.store", "function": "fault", "line": 4, "column": 4},
]
SCENARIO_PARAMS = [
    {"name": "scenario", "kind": "scalar", "direction": "in", "dtype": "INT64"},
    {"name": "x", "kind": "tensor", "direction": "in", "dtype": "FP32", "shape": ["R", "C"]},
    {"name": "state", "kind": "tensor", "direction": "inout", "dtype": "FP32", "shape": ["R", "C"]},
    {"name": "out", "kind": "tensor", "direction": "out", "dtype": "FP32", "shape": ["R", "C"]},
    {"name": "n", "kind": "scalar", "direction": "in", "dtype": "INT64"},
]


@pytest.fixture(scope="session")
def compiler() -> str:
    found = os.environ.get("CXX") or shutil.which("g++")
    if found is None:
        message = "no g++ on PATH (set CXX)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def executable(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile ``native/<name>.cpp`` to a program."""

    def build(name: str) -> Path:
        output = tmp_path_factory.mktemp("native") / name
        subprocess.run([compiler, *FLAGS, "-o", output, SOURCES / f"{name}.cpp"], check=True)
        return output

    return build


@pytest.fixture(scope="session")
def shared_object(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """Compile ``native/<name>.cpp``; each is compiled once."""
    folder = tmp_path_factory.mktemp("native")

    def build(name: str) -> bytes:
        output = folder / f"{name}.so"
        if not output.exists():
            command = [compiler, *FLAGS, "-O1", "-fPIC", "-shared", "-Wl,--build-id=sha1", "-o", output]
            subprocess.run([*command, SOURCES / f"{name}.cpp"], check=True)
        return output.read_bytes()

    return build


@pytest.fixture(scope="session")
def ready_files(shared_object: Callable[[str], bytes]) -> Callable[..., dict[str, bytes]]:
    """The files of a READY directory around hand-written code."""

    def make(
        entry: str,
        params: list[dict[str, Any]],
        kernels: list[str],
        *,
        returns: list[int] | None = None,
        **changes: Any,
    ) -> dict[str, bytes]:
        record = {
            "schema": 1,
            "entry": entry,
            "build_kind": "single_chip",
            "runtime": "host_build_graph",
            "runtime_abi": 1,
            "backend_type": "Ascend910B",
            "execution_mode": "sim",
            "params": params,
            "returns": returns or [],
            "orchestration": {"source": f"orchestration/{entry}.cpp", "binary": f"prebuilt/orchestration/{entry}.so"},
            "kernels": [
                {
                    "id": index,
                    "name": name,
                    "core": "aiv",
                    "pto": f"ptoas/{name}.pto",
                    "cpp": f"ptoas/{name}.cpp",
                    "source": f"kernels/aiv/{name}.cpp",
                    "binary": f"prebuilt/kernels/{name}.so",
                    "repairs": {},
                    "ops": FAULT_OPS if name == "fault" else [],
                }
                for index, name in enumerate(kernels)
            ],
            **changes,
        }
        config = canonical_json(record)
        files = {f"prebuilt/kernels/{name}.so": shared_object(name) for name in kernels}
        files[f"prebuilt/orchestration/{entry}.so"] = shared_object(entry)
        files[MANIFEST_FILE] = write_manifest(KernelConfig.from_bytes(config), files)
        return files | {CONFIG_FILE: config}

    return make


@pytest.fixture(scope="session")
def scenario_files(ready_files: Callable[..., dict[str, bytes]]) -> dict[str, bytes]:
    return ready_files("scenarios", SCENARIO_PARAMS, ["add", "meet", "fault", "copy"], returns=[3])


@pytest.fixture(scope="session")
def scenarios(scenario_files: dict[str, bytes]) -> CompiledProgram:
    from pypto.runtime.prebuilt import load

    return load(scenario_files)
