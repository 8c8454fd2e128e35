"""Limits that the guide has to state, and limits that are no accident."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pypto
import pypto.jit
from pypto.jit.config import CacheConfig
from pypto.runtime.config import RunConfig

GUIDE = Path(__file__).resolve().parents[3] / "docs/guide"

# Row of the requirements on the JIT -> page, and what it must say.
STATED: dict[str, tuple[str, tuple[str, ...]]] = {
    "LIM-01": ("persistent-cache", ("Whoever can write to a cache can run code", "roots that only trusted users can")),
    "LIM-03": ("persistent-cache", ("Stop every process that uses the cache before you delete entries",)),
    "LIM-04": ("persistent-cache", ("delete entries or lock files",)),
    "LIM-05": ("persistent-cache", ("a successful warmup says nothing about the shared cache",)),
    "LIM-06": ("persistent-cache", ("`compile()` returns a kernel that is generated at least",)),
    "LIM-07": ("persistent-cache", ("To get IR for certain", "CacheConfig(enabled=False)")),
    "LIM-08": ("persistent-cache", ("private builds are not shared between processes",)),
    "LIM-09": ("persistent-cache", ("not a complete trace",)),
    "LIM-10": ("persistent-cache", ('only if `sys.argv[0] != "-c"`',)),
    "LIM-12": ("persistent-cache", ("needs a new `PYPTO_CACHE_EPOCH`, a cleared cache, or the cache off",)),
    "LIM-13": ("persistent-cache", ("Hashing a hook does not tell which files it may load",)),
    "LIM-15": ("persistent-cache", ("changed without a new mark goes unnoticed under `build`",)),
    "LIM-16": ("persistent-cache", ("Replacing installed files under a running process is not supported: restart it",)),
    "LIM-17": ("persistent-cache", ("no audit of every vendor file",)),
    "LIM-18": ("persistent-cache", ("100 ms", "is a target", "no promise")),
    "LIM-20": ("persistent-cache", ("`PYPTO_COMPILER_TIMEOUT` limits each call of a compiler, not a whole build",)),
    "LIM-22": ("persistent-cache", ("temporary folder of mode 0700. They stay",)),
    "LIM-24": ("persistent-cache", ("Statistics are of one process", "nothing sets them to zero")),
    "LIM-25": ("persistent-cache", ("import the module that you name, so it must be trusted",)),
    "LIM-26": ("persistent-cache", ("Processes that cooperate build each kernel",)),
    "DIA-15": ("store", ("published entries must stay as they are while they are read, and while a handle",)),
}


@pytest.mark.parametrize("row", STATED)
def test_the_guide_says_so(row: str) -> None:
    page, sentences = STATED[row]
    text = " ".join((GUIDE / f"{page}.md").read_text().split()).replace("**", "")
    for sentence in sentences:
        assert sentence in text, row


def test_lim_02_nothing_evicts_while_processes_run() -> None:
    """LIM-02: no public name removes entries; the command that does is for roots that nobody uses."""
    names = {*pypto.__all__, *pypto.jit.__all__}
    words = ("evict", "prune", "clear", "clean", "remove", "delete", "gc")
    assert [name for name in names if any(word in name.lower() for word in words)] == []


def test_lim_19_no_file_times_are_believed(kernels: ModuleType, builds: Any, counts: Any, tmp_path: Path) -> None:
    """LIM-19: the root holds entries, locks and records, and other times change no answer."""
    root = tmp_path / "cache"
    config = RunConfig(cache_config=CacheConfig(enabled=True, root=root))
    kernels.annotated.warmup(config=config)
    assert sorted(path.name for path in root.iterdir()) == ["artifacts", "locks", "records"]
    for path in (*root.rglob("*"), Path(kernels.__file__ or "")):
        os.utime(path, (0, 0))
    builds.forget_objects()
    kernels.annotated.warmup(config=config)
    binary = next(root.rglob("main.so"))
    status = binary.stat()
    binary.write_bytes(b"Binary")
    os.utime(binary, ns=(status.st_atime_ns, status.st_mtime_ns))
    builds.forget_objects()
    kernels.annotated.warmup(config=config)
    found = counts()
    assert (found["ready_hits"], found["invalid_entries"]) == (1, 1)


def test_lim_21_nothing_is_left_beside_what_was_built(kernels: ModuleType, builds: Any) -> None:
    """LIM-21: a private build keeps its two stages, and no scratch folder of them."""
    made = kernels.annotated.warmup()
    assert made.output_dir is not None
    assert sorted(path.name for path in made.output_dir.parent.iterdir()) == ["generated", "ready"]


def test_lim_23_the_policy_reaches_no_stage(
    kernels: ModuleType, builds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIM-23: what the stages are given is the same with every policy."""
    given: list[str] = []
    real = builds.generate

    def generate(closure: Any, specialization: Any, out: Path, *others: Any) -> Any:
        given.append(repr(specialization))
        return real(closure, specialization, out, *others)

    monkeypatch.setattr(pypto.jit.building, "generate", generate)
    for number, fields in enumerate(
        ({"enabled": False}, {"enabled": True}, {"enabled": True, "extra_fingerprint": "x"})
    ):
        cache = CacheConfig(root=tmp_path / f"root{number}", **fields)  # type: ignore[arg-type]
        kernels.annotated.warmup(config=RunConfig(cache_config=cache))
    assert len(given) == 3
    assert len(set(given)) == 1
    assert "root" not in given[0] and "cache" not in given[0].lower()
