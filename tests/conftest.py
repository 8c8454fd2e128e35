"""What all tests share."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

# The project's own commands are packages beside tools/bazel and tools/test, not part of pypto.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

# A run that a shell started in the background ignores SIGINT, and every program that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
