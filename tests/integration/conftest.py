"""What the integration tests share: the real tools, installed once into the user's cache folder."""

from __future__ import annotations

import pytest

import pypto.toolchain
from pypto.toolchain import Toolchain
from pypto.toolchain.install import install
from pypto.toolchain.lock import load_lock
from pypto.toolchain.selection import default_prefix


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The packaged toolchain, in force for this process; fetched if this machine does not have it yet."""
    install(load_lock(), default_prefix())
    return pypto.toolchain.current()
