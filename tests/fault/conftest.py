"""Fixtures of the fault tests."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
for part in ("artifact_cache", "bundle"):
    sys.path.insert(0, str(HERE.parent / "unit" / part))
