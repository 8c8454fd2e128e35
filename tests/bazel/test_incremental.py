"""Editing one kernel of many reruns the actions of that kernel, and nothing else. Issue 6."""

from __future__ import annotations

from pathlib import Path

import pytest
from many_kernels import kernel, project, ran


def test_one_edit_reruns_one_kernel(tmp_path: Path) -> None:
    """Of 20 kernels the front end runs for the edited one; a comment changes nothing behind it."""
    workspace = project(tmp_path / "many", 20)
    try:
        everything = ("--output_groups=generated", "//:all")
        assert ran(workspace, *everything) == {"PyptoCheckSources": 20, "PyptoGenerate": 20}
        assert ran(workspace, *everything) == {}
        (workspace.folder / "kernel_7.py").write_text(kernel(7, "0.25"))
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
        (workspace.folder / "kernel_42.py").write_text(kernel(42, "0.25"))
        again = ran(workspace, "--config=worker", "//:all")
        assert again == {name: 1 for name in first if name != "PyptoDescribe"}
    finally:
        workspace.remove()
