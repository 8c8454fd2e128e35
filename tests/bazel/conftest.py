"""Workspaces that the Bazel tests share: each costs a Bazel server and an unpacked set of tools, so there are few."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from workspaces import ROOT, Workspace

# What Bazel 8 does anyway.
_AS_BAZEL_8 = (
    "--incompatible_disable_native_repo_rules",
    "--incompatible_disallow_empty_glob",
    "--incompatible_use_plus_in_repo_names",
)


@pytest.fixture(scope="session")
def checkout() -> Workspace:
    """This checkout with the output base that everybody who works in it has."""
    return Workspace(ROOT)


@pytest.fixture(scope="session")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A project that depends on this checkout as the module `pypto`, with the defaults of Bazel 8."""
    workspace = Workspace(
        ROOT / "tests/bazel/consumer",
        output_base=tmp_path_factory.mktemp("consumer"),
        flags=("--symlink_prefix=/", *_AS_BAZEL_8),  # no links to outputs in the checkout
    )
    yield workspace
    workspace.remove()


@pytest.fixture(scope="session")
def decode_bundle(checkout: Workspace) -> Path:
    """The bundle of `//kernels:decode_a2a3`, built in this checkout."""
    checkout.build("//kernels:decode_a2a3")
    return checkout.output("kernels/decode_a2a3.bundle")
