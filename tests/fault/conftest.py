"""Fixtures of the fault tests."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
for part in ("artifact_cache", "bundle", "jit"):
    sys.path.insert(0, str(HERE.parent / "unit" / part))


def missing(what: str) -> None:
    """Skip a test for want of something, which CI must have."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture
def strace() -> str:
    """The tracer that some tests need."""
    found = shutil.which("strace")
    if found is None:
        missing("strace is not installed (Debian package strace)")
    assert found is not None
    return found


@pytest.fixture
def root_user() -> None:
    """For tests that become another user, mount, or make device nodes."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user and mounting need root")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter; pytest's own folders are closed to them."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
