"""Editing one kernel of many reruns the actions of that kernel, and nothing else. Issue 6."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from workspaces import ROOT, Workspace, copy_checkout

KERNEL = """\
import pypto.language as pl


@pl.jit
def kernel_{number}(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.adds(pl.load(x, [0, 0], [16, 64]), {addend}), [0, 0], out)
    return out
"""

BUILD = """\
load("@pypto//rules:defs.bzl", "pypto_kernel")
[
    pypto_kernel(name = "kernel_%d" % i, src = "kernel_%d.py" % i, backend_type = "Ascend910B")
    for i in range({count})
]
"""


def project(folder: Path, count: int) -> Workspace:
    folder.mkdir(parents=True)
    (folder / "MODULE.bazel").write_text(
        f'module(name = "many")\nbazel_dep(name = "pypto")\n'
        # A copy: another pypto would be another input of every action.
        f'local_path_override(module_name = "pypto", path = "{copy_checkout(folder.parent / "pypto")}")\n'
    )
    shutil.copy2(ROOT / ".bazelrc", folder / ".bazelrc")
    rc = (folder / ".bazelrc").read_text().replace("//rules:", "@pypto//rules:").replace("=//tool", "=@pypto//tool")
    (folder / ".bazelrc").write_text(rc)
    (folder / "BUILD.bazel").write_text(BUILD.format(count=count))
    for number in range(count):
        (folder / f"kernel_{number}.py").write_text(KERNEL.format(number=number, addend=f"{number}.5"))
    return Workspace(folder, output_base=folder.parent / "output", flags=("--symlink_prefix=/",))


def ran(workspace: Workspace, *arguments: str) -> Counter[str]:
    """How many actions of each kind ran."""
    return Counter(s["mnemonic"] for s in workspace.spawns(*arguments) if s["mnemonic"].startswith("Pypto"))


def test_one_edit_reruns_one_kernel(tmp_path: Path) -> None:
    """Of 20 kernels the front end runs for the edited one; a comment changes nothing behind it."""
    workspace = project(tmp_path / "many", 20)
    try:
        everything = ("--output_groups=generated", "//:all")
        assert ran(workspace, *everything) == {"PyptoCheckSources": 20, "PyptoGenerate": 20}
        assert ran(workspace, *everything) == {}
        (workspace.folder / "kernel_7.py").write_text(KERNEL.format(number=7, addend="0.25"))
        front = {"PyptoCheckSources": 1, "PyptoGenerate": 1}
        assert ran(workspace, *everything) == front
        one = "//:kernel_7"
        whole = {"PyptoAssemble": 1, "PyptoCompile": 1, "PyptoDescribe": 1, "PyptoSeal": 1}
        assert ran(workspace, one) == whole
        text = (workspace.folder / "kernel_7.py").read_text()
        (workspace.folder / "kernel_7.py").write_text(f"# a comment above the kernel\n{text}")
        assert ran(workspace, one) == front
    finally:
        workspace.remove()


@pytest.mark.long
def test_one_edit_of_100_kernels(tmp_path: Path) -> None:
    """The whole way, in workers: 100 bundles, and after an edit the actions of one."""
    workspace = project(tmp_path / "many", 100)
    try:
        first = ran(workspace, "--config=worker", "//:all")
        assert first["PyptoGenerate"] == first["PyptoCompile"] == first["PyptoSeal"] == 100
        (workspace.folder / "kernel_42.py").write_text(KERNEL.format(number=42, addend="0.25"))
        again = ran(workspace, "--config=worker", "//:all")
        assert again == {name: 1 for name in first if name != "PyptoDescribe"}
    finally:
        workspace.remove()
