"""A project with many small kernels, each in a file and a target of its own."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from workspaces import ROOT, Workspace, copy_checkout

_KERNEL = """\
import pypto.language as pl


@pl.jit
def kernel_{number}(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.adds(pl.load(x, [0, 0], [16, 64]), {addend}), [0, 0], out)
    return out
"""

_BUILD = """\
load("@pypto//rules:defs.bzl", "pypto_kernel")
[
    pypto_kernel(name = "kernel_%d" % i, src = "kernel_%d.py" % i, backend_type = "Ascend910B")
    for i in range({count})
]
"""


def kernel(number: int, addend: str | None = None) -> str:
    """The file of a kernel; every number and every addend gives another kernel."""
    return _KERNEL.format(number=number, addend=addend or f"{number}.5")


def project(folder: Path, count: int) -> Workspace:
    """A workspace with `count` kernels in a new folder; pypto and the output base lie beside it."""
    folder.mkdir(parents=True)
    (folder / "MODULE.bazel").write_text(
        f'module(name = "many")\nbazel_dep(name = "pypto")\n'
        # A copy: another pypto would be another input of every action.
        f'local_path_override(module_name = "pypto", path = "{copy_checkout(folder.parent / "pypto")}")\n'
    )
    shutil.copy2(ROOT / ".bazelrc", folder / ".bazelrc")
    rc = (folder / ".bazelrc").read_text().replace("//rules:", "@pypto//rules:").replace("=//tool", "=@pypto//tool")
    (folder / ".bazelrc").write_text(rc)
    (folder / "BUILD.bazel").write_text(_BUILD.format(count=count))
    for number in range(count):
        (folder / f"kernel_{number}.py").write_text(kernel(number))
    return Workspace(folder, output_base=folder.parent / "output", flags=("--symlink_prefix=/",))


def ran(workspace: Workspace, *arguments: str) -> Counter[str]:
    """How many actions of each kind of ours ran in a build."""
    return Counter({kind: count for kind, count in workspace.actions(*arguments).items() if kind.startswith("Pypto")})
