"""Build stages that write stand-in files, so that the flow of requests is tested without any compiler."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pypto.build.binaries
import pypto.jit.building
import pypto.jit.forced
import pypto.toolchain
from pypto._identity.records import canonical_json
from pypto.build.generate import request_record
from pypto.build.layout import copy_file, generated_files, new_directory, read_config, write_file
from pypto.build.seal import Specialized, seal
from pypto.ir.nodes import Block, Function, FunctionKind, Program
from pypto.jit import flow
from pypto.jit.config import CacheConfig
from pypto.runtime.config import RunConfig
from pypto.runtime.kernel_config import RUNTIME_ABI
from pypto.toolchain import Bindings, Toolchain, ToolchainDescriptor, ToolFile, ToolSet

Counts = Callable[[], dict[str, Any]]
"""The fixture `counts`."""

KERNELS = """
import pypto.language as pl

FACTOR = 2.0
N = pl.dynamic("N")


@pl.jit.incore
def scale(x: pl.Tensor[[N, 64], pl.FP32], out: pl.Out[pl.Tensor[[N, 64], pl.FP32]]):
    pl.store(pl.load(x, [0, 0], [16, 64]) * FACTOR, [0, 0], out)


@pl.jit
def annotated(x: pl.Tensor[[N, 64], pl.FP32], count: int, out: pl.Out[pl.Tensor[[N, 64], pl.FP32]]):
    scale(x, out)
    return out


@pl.jit
def open_shape(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    scale(x, out)
    return out
"""


class Builds:
    """What the stand-in stages did, and hooks into them."""

    def __init__(self) -> None:
        self.generated: list[str] = []
        self.compiled: list[str] = []
        self.uncovered: tuple[str, ...] = ()
        self.while_generating: Callable[[], None] = lambda: None
        self.while_compiling: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def forget_objects(self) -> None:
        """What a new process would know: nothing."""
        flow._objects.clear()

    def seal(self, folder: Path, version: str, *requests: Any) -> Path:
        """A bundle in a folder, sealed with other tools than those in force."""
        return seal_all(folder, version, *requests)

    def make_toolchain(self, folder: Path, version: str) -> Toolchain:
        """Another toolchain of empty folders."""
        return fake_toolchain(folder, version)

    def generate(self, closure: Any, specialization: Any, out: Path, observe: Any = None) -> Program:
        with self._lock:
            self.generated.append(specialization.entry)
        config = {
            "schema": 1,
            "entry": specialization.entry,
            "build_kind": "single_chip",
            "runtime": "host_build_graph",
            "runtime_abi": RUNTIME_ABI,
            "backend_type": specialization.options.backend_type,
            "params": [],
            "execution_mode": specialization.options.execution_mode,
            "orchestration": {"source": "orchestration/main.cpp", "binary": "prebuilt/orchestration/main.so"},
            "kernels": [],
        }
        root = new_directory(out)
        write_file(root, "kernel_config.json", canonical_json(config))
        write_file(root, "orchestration/main.cpp", b"int main() {}\n")
        self.while_generating()
        entry = Function(specialization.entry, FunctionKind.ORCHESTRATION, [], Block())
        program = Program(specialization.entry, {specialization.entry: entry})
        if observe is not None:
            observe("Parse", program)
        return program

    def assemble(self, generated: Path, toolchain: Toolchain, out: Path) -> None:
        new_directory(out)

    def complete(self, directory: Path, toolchain: Toolchain) -> tuple[str, ...]:
        config = read_config(directory)
        with self._lock:
            self.compiled.append(config["entry"])
        write_file(directory, "prebuilt/orchestration/main.so", b"binary")
        write_file(directory, "binary_manifest.json", b"{}")
        return ("prebuilt/orchestration/main.so",)

    def compile(self, generated: Path, assembled: Path, toolchain: Toolchain, out: Path) -> tuple[str, ...]:
        config = read_config(generated)
        with self._lock:
            self.compiled.append(config["entry"])
        self.while_compiling()
        root = new_directory(out)
        for name in generated_files(config):
            copy_file(generated / name, root, name)
        for part in (config["orchestration"], *config["kernels"]):
            write_file(root, part["binary"], b"binary")
        write_file(root, "binary_manifest.json", b"{}")
        return self.uncovered


def seal_all(folder: Path, version: str, *requests: Any) -> Path:
    """A bundle of the artifacts that requests ask for, sealed with the identity of a stand-in toolchain."""
    work = folder / "steps"
    stages = Builds()
    inputs = []
    for number, request in enumerate(requests):
        at = work / str(number)
        generated, ready = at / "generated", at / "ready"
        stages.generate(request.closure, request.specialization, generated)
        stages.compile(generated, at, fake_toolchain(folder / "tools"), ready)
        (at / "request.json").write_bytes(request_record(request.closure, request.specialization).to_bytes())
        inputs.append(Specialized(at / "request.json", generated, ready))
    seal(inputs, fake_toolchain(folder / "tools", version).descriptor, folder / "x.bundle")
    return folder / "x.bundle"


def fake_toolchain(folder: Path, version: str = "1") -> Toolchain:
    """A toolchain of empty folders."""
    sets = {}
    for name in ("gcc", "isa", "ptoas"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        tool = ToolFile("bin/tool", "1" * 64, None)
        sets[name] = ToolSet(name, version, "0" * 64, "2" * 64, 1, 1, {"tool": tool})
    return Toolchain(ToolchainDescriptor(sets), Bindings({name: folder / name for name in sets}))


def stand_in(made: Builds, patch: Callable[[Any, str, Any], None]) -> None:
    """Let JIT requests use these stages; ``patch`` sets an attribute."""
    patch(pypto.jit.building, "generate", made.generate)
    patch(pypto.jit.forced, "complete", made.complete)
    patch(pypto.build.binaries, "assemble", made.assemble)
    patch(pypto.build.binaries, "compile_", made.compile)


def load_kernels(folder: Path) -> ModuleType:
    """The module of kernels, written to a folder and imported."""
    path = folder / "sample_kernels.py"
    path.write_text(KERNELS)
    spec = importlib.util.spec_from_file_location("sample_kernels", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def in_child(action: Callable[[], Any]) -> Any:
    """What an action returns in a forked child, by way of JSON; an error is its text under ``raised``."""
    return in_children([action])[0]


def in_children(actions: Sequence[Callable[[], Any]]) -> list[Any]:
    """What several actions return, each in a forked child of its own, all at once."""
    started = [_start(action) for action in actions]
    return [_answer(child, reader) for child, reader in started]


def _start(action: Callable[[], Any]) -> tuple[int, int]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                answer = action()
            except BaseException as error:
                answer = {"raised": f"{type(error).__name__}: {error}"}
            os.write(writer, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writer)
    return child, reader


def _answer(child: int, reader: int) -> Any:
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text)


def cached(root: Path, **fields: Any) -> RunConfig:
    """A call's settings with a persistent cache."""
    return RunConfig(cache_config=CacheConfig(enabled=True, root=root, **fields))


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below a folder with mode, time and content; folders with mode and time."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def two_tensors(rows: int) -> tuple[Any, Any]:
    """Sample tensors of ``open_shape``: shape and element type, no data."""

    class Meta:
        shape = (rows, 64)
        dtype = "float32"

    return Meta(), Meta()
