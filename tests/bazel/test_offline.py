"""Builds without a network, after everything was fetched once; lock files that say nothing of the machine. Issue 6."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from many_kernels import project
from other_world import LOOPBACK, NO_NETWORK
from workspaces import ROOT, TOOL_REPOSITORIES

from pypto.bundle import open_bundle

EXTENSIONS = sorted([*(ROOT / "toolchains/extensions").glob("*.bzl"), ROOT / "third_party/python/extension.bzl"])

# What a module extension could ask a machine for; Bazel would write down that the answer depends on it.
_OF_THE_MACHINE = re.compile(r"\bmctx\.(os|getenv|execute|which|download\w*|extract|path)\b|_dependent")


def test_extensions_read_nothing_of_the_machine() -> None:
    """They say that they are reproducible, so Bazel keeps them out of MODULE.bazel.lock: it is the same everywhere."""
    assert len(EXTENSIONS) == 5
    shared = ROOT / "toolchains/private/extension.bzl"
    for path in (*EXTENSIONS, shared, ROOT / "toolchains/private/choice.bzl"):
        assert not _OF_THE_MACHINE.findall(path.read_text()), path
    for path in EXTENSIONS:
        text = path.read_text()
        metadata = shared.read_text() if "return tool_set_extension(" in text else text
        assert "return mctx.extension_metadata(reproducible = True)" in metadata, path


@pytest.mark.long
def test_vendored_repositories_need_no_network(tmp_path: Path) -> None:
    """`bazel vendor` takes modules and unpacked tools along; an output base that never fetched builds from them."""
    if subprocess.run([*NO_NETWORK, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody have a network namespace")
    workspace = project(tmp_path / "many", 1)
    vendored = f"--vendor_dir={tmp_path}/vendor"
    try:
        workspace.run("vendor", vendored, "//:kernel_0").succeeded()
        # The tools are among what is fetched now; without a network nothing can be.
        held = [path.name for path in (tmp_path / "vendor").iterdir()]
        assert all(any(name.endswith(wanted) for name in held) for wanted in TOOL_REPOSITORIES)
        offline = [f"--output_base={tmp_path}/offline", "build", "--symlink_prefix=/", vendored, "//:kernel_0"]
        environment = {**os.environ, "PYPTO_TOOLCHAIN_FILES": str(tmp_path / "no such folder")}  # fetching would fail
        script = f'python3 -c \'{LOOPBACK}\' && exec "$0" "$@"'
        done = subprocess.run(
            [*NO_NETWORK, "sh", "-c", script, workspace.launcher, *offline],
            cwd=workspace.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        bundles = list((tmp_path / "offline").glob("execroot/_main/bazel-out/*/bin/kernel_0.bundle"))
        assert [entry.name for entry in open_bundle(bundles[0]).entries] == ["kernel_0"]
    finally:
        replace(workspace, output_base=tmp_path / "offline").remove()
        workspace.remove()
