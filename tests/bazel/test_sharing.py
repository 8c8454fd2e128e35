"""Checkouts in different places and projects that depend on this one: equal inputs, equal actions, equal bytes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from workspaces import ROOT, TOOL_REPOSITORIES, Workspace, copy_checkout, hidden_compilers, tree

from pypto.bundle import open_bundle

STEPS = ["PyptoAssemble", "PyptoCheckSources", "PyptoCompile", "PyptoDescribe", "PyptoGenerate", "PyptoSeal"]


def _steps(spawns: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {spawn["mnemonic"]: spawn for spawn in spawns if spawn["mnemonic"].startswith("Pypto")}


def test_a_second_checkout_builds_the_same_and_a_third_hits_the_cache(
    decode_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Clean builds in different folders give equal bytes; with a disk cache every action of the later one is a hit.

    The sandbox hides the compilers of the machine.
    """
    expected = tree(decode_bundle)
    folder = tmp_path_factory.mktemp("second")
    flags = (f"--disk_cache={folder}/cache", *hidden_compilers())
    copy = copy_checkout(folder / "copy")
    workspace, runs = Workspace(copy, launcher=copy / "tools/bazel", output_base=folder / "output", flags=flags), {}
    try:
        for name in ("second", "third"):
            runs[name] = _steps(workspace.spawns("//kernels:decode_a2a3"))
            assert tree(workspace.output("kernels/decode_a2a3.bundle")) == expected
            # What `test_nothing_is_fetched_that_is_not_built` looks for is really called that.
            assert all(any(found.endswith(wanted) for found in workspace.fetched()) for wanted in TOOL_REPOSITORIES)
            if name == "second":
                # The third one inherits the unpacked tools, which are the same files anyway, and no output.
                workspace.run("clean").succeeded()
                workspace.run("shutdown").succeeded()
                moved = copy.rename(folder / "third")
                workspace = replace(workspace, folder=moved, launcher=moved / "tools/bazel")
    finally:
        workspace.remove()
    assert sorted(runs["second"]) == sorted(runs["third"]) == STEPS
    assert {spawn["runner"] for spawn in runs["second"].values()} == {"linux-sandbox"}
    assert {spawn["runner"] for spawn in runs["third"].values()} == {"disk cache hit"}


def test_a_project_that_depends_on_pypto(consumer: Workspace, tmp_path: Path) -> None:
    """A kernel of another module, with shapes from BUILD, a module name and a dependency, is built and runs."""
    consumer.build("//python/acme:scale_a2a3")
    bundle = consumer.output("python/acme/scale_a2a3.bundle")
    program = tmp_path / "serve.py"
    program.write_text(
        "import sys, numpy, pypto\n"
        "x = numpy.arange(64 * 64, dtype=numpy.float32).reshape(64, 64)\n"
        "out = numpy.zeros_like(x)\n"
        "pypto.import_bundle(sys.argv[1]).load('scale')(x, out)\n"
        "numpy.save(sys.argv[2], out)\n"
    )
    result = tmp_path / "out.npy"
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(program), str(bundle), str(result)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(result), 2.5 * np.arange(64 * 64, dtype=np.float32).reshape(64, 64))


def test_a_kernel_for_the_ring_buffer_runtime(consumer: Workspace) -> None:
    """An option of the kernel chooses the runtime; the bundle says so, and gives the right numbers."""
    consumer.run("test", "//python/acme:scale_ring_test").succeeded()
    bundle = open_bundle(consumer.output("python/acme/scale_ring.bundle"))
    assert bundle.description.target.runtime == "tensormap_and_ringbuffer"


def test_what_one_execution_mode_skips(consumer: Workspace) -> None:
    """Kernel tests are for the simulator; targets for the device are skipped there. The project has no module
    `platforms` of its own."""
    for flags, target in ((("--@pypto//rules:execution_mode=device",), "scale_ring_test"), ((), "scale_on_device")):
        done = consumer.run("build", "--nobuild", *flags, f"//python/acme:{target}")
        assert done.code != 0
        assert f"Target //python/acme:{target} is incompatible and cannot be built" in done.output


def test_device_message_names_the_flag_as_the_consumer_writes_it(consumer: Workspace) -> None:
    done = consumer.run("build", "--@pypto//rules:execution_mode=device", "//python/acme:scale_a2a3")
    assert done.code != 0
    assert "bazel build --@pypto//rules:execution_mode=sim //python/acme:scale_a2a3" in done.output
