"""What all tests share."""

from __future__ import annotations

import sys
from pathlib import Path

# The project's own commands are packages beside tools/bazel and tools/test, not part of pypto.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
