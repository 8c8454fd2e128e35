"""Where the time of a compilation goes, and what ptoas makes on the way; costs nothing when nobody asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROFILE_SCHEMA = 1


@dataclass(frozen=True)
class Stage:
    """A part of a compilation: ``pass``, ``codegen``, ``ptoas`` or ``c++``, of what, and its milliseconds."""

    stage: str
    name: str
    milliseconds: float


@dataclass
class CompileProfile:
    """What one compilation is asked to leave behind.

    Attributes:
        stages: what was measured, in order of its end.
        ptoas_dumps: folder for what ptoas makes of each kernel, one below it for each; ``None`` for nothing.
    """

    stages: list[Stage] = field(default_factory=list)
    ptoas_dumps: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, stage: str, name: str, seconds: float) -> None:
        """Note a stage."""
        with self._lock:
            self.stages.append(Stage(stage, name, round(seconds * 1000, 3)))

    def record(self) -> dict[str, Any]:
        """The stages and their sums as plain data. Tools run at the same time, so that sums exceed the time waited."""
        sums: dict[str, float] = {}
        for stage in self.stages:
            sums[stage.stage] = round(sums.get(stage.stage, 0.0) + stage.milliseconds, 3)
        stages = [{"stage": s.stage, "name": s.name, "ms": s.milliseconds} for s in self.stages]
        return {"schema": PROFILE_SCHEMA, "sums_ms": sums, "stages": stages}


_active: ContextVar[CompileProfile | None] = ContextVar("pypto_compile_profile", default=None)


def active() -> CompileProfile | None:
    """The profile of the compilation that the caller works for."""
    return _active.get()


@contextmanager
def profiling(profile: CompileProfile) -> Iterator[None]:
    """Let the build steps inside tell ``profile``, also those on threads that they start."""
    token = _active.set(profile)
    try:
        yield
    finally:
        _active.reset(token)


@contextmanager
def stage(name: str, what: str) -> Iterator[None]:
    """Measure what is inside, if somebody asked."""
    profile = _active.get()
    if profile is None:
        yield
        return
    began = time.perf_counter()
    try:
        yield
    finally:
        profile.add(name, what, time.perf_counter() - began)
