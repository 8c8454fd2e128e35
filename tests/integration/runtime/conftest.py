"""Hand-written kernels and orchestrations, compiled once per session by the pinned compiler."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pypto._identity.records import canonical_json
from pypto.runtime import CompiledProgram
from pypto.runtime.binary_manifest import write_manifest
from pypto.runtime.kernel_config import CONFIG_FILE, MANIFEST_FILE, KernelConfig
from pypto.toolchain import Toolchain
from pypto.toolchain.tools import Command, gcc_orchestration, private_root

SOURCES = Path(__file__).parent / "native"

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
def shared_object(toolchain: Toolchain) -> Callable[[str], bytes]:
    """Compile ``native/<name>.cpp``, with warnings as errors; each is compiled once."""
    built: dict[str, bytes] = {}

    def build(name: str) -> bytes:
        if name not in built:
            command = gcc_orchestration(toolchain, f"w/{name}.cpp", f"w/{name}.so")
            argv = [part for part in command.argv if part != "-w"]
            argv[1:1] = ["-Wall", "-Wextra", "-Werror"]
            with private_root(toolchain) as root:
                shutil.copy(SOURCES / f"{name}.cpp", root.work)
                root.run(Command(tuple(argv), command.env), f"compile {name}")
                built[name] = (root.work / f"{name}.so").read_bytes()
        return built[name]

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
        binaries: dict[str, bytes] | None = None,
        ops: list[dict[str, Any]] | None = None,
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
                    "ops": ops or (FAULT_OPS if name == "fault" else []),
                }
                for index, name in enumerate(kernels)
            ],
            **changes,
        }
        config = canonical_json(record)
        files = {f"prebuilt/kernels/{name}.so": (binaries or {}).get(name) or shared_object(name) for name in kernels}
        files[f"prebuilt/orchestration/{entry}.so"] = (binaries or {}).get(entry) or shared_object(entry)
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
