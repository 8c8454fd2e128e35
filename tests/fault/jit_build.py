"""A whole warm-up of the JIT, with stand-in build stages, as a scenario of the fault tests.

Whatever happened to the process that built, the next one must be served: by entries that are whole, or by a build of
its own that it can publish.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jit_stand_ins
import pytest
from injection import Point, Scenario, _assert_locks_free
from jit_stand_ins import in_child
from tracing import Outcome, fast_folder, mark

import pypto
import pypto.toolchain
from pypto.jit import flow
from pypto.jit.artifact_cache import ArtifactStore, LookupStatus
from pypto.jit.cli.entries import read_root
from pypto.jit.config import CacheConfig
from pypto.runtime.config import RunConfig

_BUILT = ("generation_builds", "binary_builds")


class JitBuild(Scenario):
    """``warmup`` of a kernel that nobody has built yet; ``found``: its GENERATED entry is there already."""

    def __init__(self, *, found: bool = False) -> None:
        self.found = found
        self.kernels = jit_stand_ins.load_kernels(fast_folder())
        self.tools = jit_stand_ins.fake_toolchain(fast_folder())
        # Once here, so that no traced child is the first to import a module or to digest this package.
        folder = fast_folder()
        self.prepare(folder)
        here = os.getcwd()
        with pytest.MonkeyPatch.context() as patch:
            self._warm(folder, patch=patch.setattr)
        os.chdir(here)
        flow._objects.clear()

    def prepare(self, folder: Path) -> None:
        (folder / "work").mkdir()
        if self.found:
            answer = in_child(lambda: self._warm(folder, compile_only=True))
            assert answer["state"] == "GENERATED", answer

    def act(self, folder: Path) -> dict[str, Any]:
        # What the stages write is theirs: nobody can tell that it is not what they meant.
        mark("build")
        return self._warm(folder)

    def _warm(
        self, folder: Path, *, compile_only: bool = False, patch: Callable[[Any, str, Any], None] = setattr
    ) -> dict[str, Any]:
        jit_stand_ins.stand_in(jit_stand_ins.Builds(), patch)
        patch(pypto.toolchain.selection, "current", lambda: self.tools)
        os.chdir(folder / "work")
        config = RunConfig(cache_config=CacheConfig(enabled=True, root=folder / "root"))
        before = pypto.cache_stats()
        entry = self.kernels.annotated
        kernel = entry.compile(config=config) if compile_only else entry.warmup(config=config)
        after = pypto.cache_stats()
        grown = {
            field.name: getattr(after, field.name) - getattr(before, field.name)
            for field in dataclasses.fields(after)
            if field.name not in ("lookup_ns", "build_ns", "last_bypass_reason")
        }
        directory = kernel.binary_dir or kernel.output_dir
        assert directory is not None
        whole = compile_only or (directory / "prebuilt/orchestration/main.so").read_bytes() == b"binary"
        return {"state": kernel.state, "origin": kernel.origin.value, "whole": whole, **grown}

    def check(self, folder: Path, point: Point, outcome: Outcome) -> str:
        before = self._entries(folder)
        report = outcome.report
        word = "killed" if report is None else self._check_report(point, report)
        _assert_locks_free(folder)
        again = in_child(lambda: self._warm(folder))
        assert (again.get("state"), again.get("origin"), again.get("whole")) == ("READY", "shared", True), again
        assert [again[name] for name in _BUILT] == [int(state not in before) for state in self._steps(before)], again
        assert again["invalid_entries"] == again["storage_errors"] == again["bypasses"] == 0, again
        assert self._entries(folder) == {"generated", "ready"}
        return f"{word}, then {'+'.join(sorted(before)) or 'nothing'}"

    @staticmethod
    def _steps(present: set[str]) -> tuple[str, str]:
        # A READY entry answers alone.
        return ("ready", "ready") if "ready" in present else ("generated", "ready")

    @staticmethod
    def _entries(folder: Path) -> set[str]:
        """States of the entries in the root, each of them whole."""
        store = ArtifactStore(folder / "root", readonly=True)
        entries = read_root(folder / "root").entries
        for entry in entries:
            assert entry.manifest is not None, entry.problem
            found = store.lookup(entry.manifest.key, entry.manifest.spec)
            assert found.status is LookupStatus.HIT, found
        return {entry.state for entry in entries}

    def _check_report(self, point: Point, report: dict[str, Any]) -> str:
        if "raised" in report:
            # An error of the private directories or of the stages reaches the caller: there is nothing to fall back to.
            assert {"OSError", "BuildOutputError", "BuildError"} & set(report["raised"]) or (
                "retval" in point.how or point.persistent
            ), report
            return "raised"
        assert (report["state"], report["whole"]) == ("READY", True), report
        assert report["requests"] == 1
        assert report["misses"] + report["generated_hits"] + report["ready_hits"] + report["bypasses"] >= 1, report
        if report["origin"] == "private":
            trouble = report["storage_errors"] + report["invalid_entries"] + report["bypasses"]
            assert trouble >= 1, f"private without a reason that counts: {report}"
        return str(report["origin"])
