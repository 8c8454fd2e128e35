"""Kernels for A5 in the simulator, and for devices up to READY, through the build steps and the JIT."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pypto.language as pl
import pypto.toolchain
from pypto.build.assemble import assemble
from pypto.build.compile_ import compile_
from pypto.build.generate import generate
from pypto.build.options import coerce_options
from pypto.build.specialize import specialize
from pypto.language.errors import CompileError
from pypto.language.source import collect
from pypto.runtime import CompiledProgram, DeviceUnavailable
from pypto.runtime.elf import read_program, read_shared_object
from pypto.toolchain import Toolchain

ROOT = Path(__file__).resolve().parents[3]
ROWS, COLUMNS = 400, 128  # 200 KiB of FP32


@pl.jit
def big(x: pl.Tensor[[ROWS, COLUMNS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [ROWS, COLUMNS])
        pl.store(tile, [0, 0], out)
    return out


@pl.jit
def small(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.exp(pl.load(x, [0, 0], [16, 64])), [0, 0], out)
    return out


def build(function: object, toolchain: Toolchain, folder: Path, backend: str, mode: str) -> Path:
    """READY directory of an entry whose parameters all have their shapes."""
    options = coerce_options({"backend_type": backend, "execution_mode": mode})
    specialization = specialize(function.qualname, function.signature.params, {}, options)  # type: ignore[attr-defined]
    generate(collect(function), specialization, folder / "generated")  # type: ignore[arg-type]
    assemble(folder / "generated", toolchain, folder / "assembled")
    assert compile_(folder / "generated", folder / "assembled", toolchain, folder / "ready") == ()
    return folder / "ready"


def test_200_kib_on_chip_run_on_a5(toolchain: Toolchain, tmp_path: Path) -> None:
    """The whole way: verifier, ptoas, compiler, simulator."""
    program = CompiledProgram.from_dir(build(big, toolchain, tmp_path, "Ascend950", "sim"))
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    out = np.zeros_like(x)
    program(x, out)
    np.testing.assert_array_equal(out, x)
    assert program.platform == "a5sim"


def test_200_kib_on_chip_are_refused_on_a2_and_a3(toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"\(200 KiB\) does not fit into Vec, which has 192 KiB"):
        build(big, toolchain, tmp_path, "Ascend910B", "sim")


@pytest.mark.parametrize(("backend", "platform"), [("Ascend910B", "a2a3"), ("Ascend950", "a5")])
def test_a_device_build_up_to_ready(device_toolchain: Toolchain, tmp_path: Path, backend: str, platform: str) -> None:
    """KC-10, KC-40: complete and validated without a device; loading says what is missing."""
    ready = build(small, device_toolchain, tmp_path, backend, "device")
    manifest = json.loads((ready / "binary_manifest.json").read_bytes())
    assert manifest["platform"] == platform
    kernel, orchestration = manifest["binaries"]
    assert (kernel["kind"], orchestration["kind"]) == ("kernel", "orchestration")
    assert "kernel_entry" in read_program((ready / kernel["path"]).read_bytes()).symbols
    assert read_shared_object((ready / orchestration["path"]).read_bytes()).build_id == orchestration["build_id"]
    with pytest.raises(DeviceUnavailable, match=r"needs an NPU and its driver, and this machine has none"):
        CompiledProgram.from_dir(ready)


def test_the_jit_warms_a_device_kernel_into_the_store(
    device_toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built once, found READY afterwards; a call is refused for want of a device."""
    from pypto import CacheConfig
    from pypto.runtime import RunConfig

    descriptor = tmp_path / "tools" / "descriptor.json"
    descriptor.parent.mkdir()
    descriptor.write_bytes(device_toolchain.descriptor.to_bytes())
    (descriptor.parent / "bindings.json").write_bytes(device_toolchain.bindings.to_bytes(descriptor.parent))
    monkeypatch.chdir(tmp_path)
    cache = CacheConfig(enabled=True, root=str(tmp_path / "cache"))
    config = RunConfig(execution_mode="device", cache_config=cache)
    pypto.toolchain.use(descriptor)
    try:
        small.warmup(config=config)
        stored = sorted(path.parent.name for path in (tmp_path / "cache").rglob("ready/**/*.so"))
        assert stored == ["kernels", "orchestration"]
        x = np.zeros((16, 64), np.float32)
        with pytest.raises(DeviceUnavailable, match="NPU"):
            small(x, np.zeros_like(x), config=config)
    finally:
        pypto.toolchain.use(None)


def run_step(*arguments: str) -> None:
    """One step in a process of its own, as an action runs it."""
    done = subprocess.run([sys.executable, "-m", "pypto.build", *arguments], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_the_command_line_and_a_bundle(device_toolchain: Toolchain, tmp_path: Path) -> None:
    """The four steps as Bazel runs them, each with the roots it needs; the bundle opens and does not load."""
    from pypto.bundle.reading import open_bundle

    (tmp_path / "small_kernel.py").write_text(
        "import pypto.language as pl\n\n\n@pl.jit\n"
        "def small(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        pl.store(pl.exp(pl.load(x, [0, 0], [16, 64])), [0, 0], out)\n"
        "    return out\n"
    )
    (tmp_path / "descriptor.json").write_bytes(device_toolchain.descriptor.to_bytes())
    roots = {name: f"--root={name}={device_toolchain.root(name)}" for name in device_toolchain.descriptor.sets}
    tools = f"--descriptor={tmp_path}/descriptor.json"
    path = {name: str(tmp_path / name) for name in ("generated", "assembled", "ready", "small.bundle", "request")}
    request = ["--request", path["request"]]
    kernel = ["--module=small_kernel", "--entry=small", f"--import-root={tmp_path}"]
    target = ["--backend-type=Ascend950", "--execution-mode=device"]
    run_step("generate", *kernel, *target, "--out", path["generated"], *request)
    generated = ["--generated", path["generated"]]
    run_step("assemble", *generated, tools, roots["ptoas"], "--out", path["assembled"])
    compilers = [roots["gcc"], roots["isa"], roots["cann"]]
    assembled = ["--assembled", path["assembled"]]
    run_step("compile", *generated, *assembled, tools, *compilers, "--out", path["ready"])
    sealed = [*request, *generated, "--ready", path["ready"], tools, "--out", path["small.bundle"]]
    run_step("seal", *sealed, "--digest", str(tmp_path / "digest"))
    bundle = open_bundle(path["small.bundle"], digest=(tmp_path / "digest").read_text().strip())
    with pytest.raises(DeviceUnavailable, match="Ascend950"):
        bundle.load("small")
