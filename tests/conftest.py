"""What all tests share."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

# The project's own commands are packages beside tools/bazel and tools/test, not part of pypto.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

# A run that a shell started in the background ignores SIGINT, and every program that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: runs for minutes; only with `tools/test PATHS -m long`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests out, unless `-m` chooses or one is named."""
    if config.option.markexpr or any("::" in argument for argument in config.args):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
