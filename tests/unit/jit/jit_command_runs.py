"""Running the commands of ``python -m pypto.jit`` in tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def change(path: Path, **cache: Any) -> None:
    document = json.loads(path.read_text())
    document["cache"].update(cache)
    path.write_text(json.dumps(document))


def warm(run: Run, config: Path, status: int = 0) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = run("warm", "--module", "sample_kernels", "--config", str(config), status=status)[
        "results"
    ]
    return results


def explain(run: Run, config: Path, status: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("explain", "--module", "sample_kernels", "--config", str(config), status=status)[
        "requests"
    ]
    return found


def tree(root: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_mode) for path in sorted(root.rglob("*"))}
