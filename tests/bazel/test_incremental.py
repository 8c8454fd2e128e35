"""What is built again: the actions of an edited kernel, and nothing for another configuration. Issue 6."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from many_kernels import kernel, project, ran
from workspaces import Workspace, tree

COUNT = 8


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = project(tmp_path_factory.mktemp("incremental") / "many", COUNT)
    yield made
    made.remove()


def test_one_edit_reruns_one_kernel(workspace: Workspace) -> None:
    """Of many kernels the front end runs for the edited one; a comment changes nothing behind it."""
    everything = ("--output_groups=generated", "//:all")
    assert ran(workspace, *everything) == {"PyptoCheckSources": COUNT, "PyptoGenerate": COUNT}
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


def test_another_configuration_runs_nothing(workspace: Workspace, tmp_path: Path) -> None:
    """With path mapping and a cache every action is found when only the compilation mode differs.

    The bytes are those of a build without path mapping.
    """
    workspace.build("//:kernel_7")
    expected = tree(workspace.output("kernel_7.bundle"))
    shared = ("--experimental_output_paths=strip", f"--disk_cache={tmp_path}", "//:kernel_7")
    # Other actions than before: their command lines name no configuration.
    runners = {s["mnemonic"]: s["runner"] for s in workspace.spawns(*shared) if s["mnemonic"].startswith("Pypto")}
    assert set(runners.values()) == {"linux-sandbox"}
    assert tree(workspace.output("kernel_7.bundle")) == expected
    again = {s["mnemonic"]: s["runner"] for s in workspace.spawns("--compilation_mode=opt", *shared)}
    assert {name: again[name] for name in runners} == dict.fromkeys(runners, "disk cache hit")
    assert sorted(runners) == [
        "PyptoAssemble",
        "PyptoCheckSources",
        "PyptoCompile",
        "PyptoDescribe",
        "PyptoGenerate",
        "PyptoSeal",
    ]


@pytest.mark.long
def test_one_edit_of_100_kernels(tmp_path: Path) -> None:
    """The whole way: 100 bundles, and after an edit the actions of one. On two quiet cores it takes five minutes."""
    workspace = project(tmp_path / "many", 100)
    try:
        first = ran(workspace, "//:all")
        assert first["PyptoGenerate"] == first["PyptoCompile"] == first["PyptoSeal"] == 100
        (workspace.folder / "kernel_42.py").write_text(kernel(42, "0.25"))
        again = ran(workspace, "//:all")
        assert again == {name: 1 for name in first if name != "PyptoDescribe"}
    finally:
        workspace.remove()
