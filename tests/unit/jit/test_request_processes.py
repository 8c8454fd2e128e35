"""Several processes and one root: who builds, who shares, and what each of them counts."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jit_stand_ins import in_child, in_children

import pypto
from pypto.jit.config import CacheConfig
from pypto.runtime.config import RunConfig

NOBODY = 65534


def cached(root: Path, **fields: Any) -> RunConfig:
    return RunConfig(cache_config=CacheConfig(enabled=True, root=root, **fields))


def warming(kernels: ModuleType, config: RunConfig) -> Callable[[], dict[str, Any]]:
    """Warms up in a process that knows no object yet; says what came of it and what was counted."""

    def warm() -> dict[str, Any]:
        made = kernels.annotated.warmup(config=config)
        counted = {name: value for name, value in dataclasses.asdict(pypto.cache_stats()).items() if value}
        counted = {name: value for name, value in counted.items() if not name.endswith("_ns")}
        return {"origin": made.origin.value, "place": str(made.output_dir), "program": bool(made.program), **counted}

    return warm


def test_req_18_28_jit_17_23_eight_processes_build_once(kernels: ModuleType, builds: Any, tmp_path: Path) -> None:
    """REQ-18, REQ-28, JIT-17, JIT-23, STA-01: each stage once in all; only who generated has the program."""
    builds.while_generating = builds.while_compiling = lambda: time.sleep(0.02)
    found = in_children([warming(kernels, cached(tmp_path / "cache"))] * 8)
    assert [each.get("raised") for each in found] == [None] * 8
    for stage in ("generation_builds", "binary_builds"):
        assert sum(each.get(stage, 0) for each in found) == 1
    for each in found:
        assert (each["origin"], each["requests"]) == ("shared", 1)
        assert each["program"] == (each.get("generation_builds", 0) == 1)
        outcomes = ("ready_hits", "generated_hits", "misses")
        assert sum(each.get(name, 0) for name in outcomes) == 1
        assert set(each) <= {"origin", "place", "program", "requests", *outcomes, "generation_builds", "binary_builds"}


@pytest.mark.parametrize("case", ["no folder", "unwritable", "readonly"])
def test_req_29_to_32_lim_08_what_cannot_be_shared_is_built_by_every_process(
    kernels: ModuleType, builds: Any, tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-29 to REQ-32, STA-12, STA-35: overlapping processes, and each has a build in a folder of its own."""
    root = tmp_path / "cache"
    config = cached(root, readonly=case == "readonly")
    action = warming(kernels, config)
    if case == "no folder":
        root.write_text("")
    else:
        root.mkdir()
    if case == "unwritable":
        if os.geteuid() != 0:
            pytest.skip("only root can become a user who may not write")
        # Another user may be unable to read what Python would still have to import.
        kernels.annotated.warmup(config=cached(tmp_path / "elsewhere"))
        builds.forget_objects()
        root.chmod(0o555)
        for folder in (*tmp_path.parents[:2], tmp_path):
            folder.chmod(folder.stat().st_mode | 0o755)
        work = Path.cwd()
        work.chmod(0o777)
        warm = action

        def action() -> dict[str, Any]:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            return warm()

    builds.while_compiling = lambda: time.sleep(0.05)
    found = in_children([action] * 3)
    before = sorted(root.iterdir()) if root.is_dir() else root.read_text()
    assert not before
    assert len({each["place"] for each in found}) == 3
    expected = {"requests": 1, "misses": 1, "generation_builds": 1, "binary_builds": 1}
    for each in found:
        assert each["origin"] == "private"
        assert {name: each.get(name) for name in expected} == expected
        assert (each.get("storage_errors", 0) > 0) == (case != "readonly")
        assert "bypasses" not in each


def test_a_key_knows_nothing_of_the_process(
    kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-28, CFG-55: another folder, user, home, locale, time zone, umask and hash seed; the same key and a hit."""
    root = tmp_path / "cache"
    made = kernels.annotated.warmup(config=cached(root))
    entries = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    def elsewhere() -> dict[str, Any]:
        folder = tmp_path / "elsewhere"
        folder.mkdir()
        os.chdir(folder)
        os.umask(0o077)
        os.environ.update(
            HOME=str(folder), LANG="C", LC_ALL="C", TZ="Asia/Tokyo", PYTHONHASHSEED="1", USER="x", PATH="/nonexistent",
            CPATH="/nonexistent", CFLAGS="-O0", CXX="clang++", SOURCE_DATE_EPOCH="1", TMPDIR=str(folder),
        )  # fmt: skip
        os.nice(1)
        again = kernels.annotated.warmup(config=cached(root))
        return {"key": again.key, "ready_hits": pypto.cache_stats().ready_hits}

    builds.forget_objects()
    assert in_child(elsewhere) == {"key": made.key, "ready_hits": 1}
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == entries
