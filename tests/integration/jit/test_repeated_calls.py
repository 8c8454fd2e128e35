"""Repeated calls of a JIT function: answered at once as long as a request would find the same object, and only then."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pypto
import pypto.toolchain
from pypto.jit.repeated import RepeatedCalls
from pypto.runtime import RunConfig

Change = Callable[[pytest.MonkeyPatch, Path], Any]


@pytest.fixture
def module(world: Any, cache: Path, no_tools: Path) -> Iterator[ModuleType]:
    """The kernels of the tests in this process, new for each test, with a descriptor whose tools do not exist."""
    spec = importlib.util.spec_from_file_location("repeated_kernels", world.folder / "sample_kernels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["repeated_kernels"] = module
    spec.loader.exec_module(module)
    pypto.toolchain.use(no_tools)
    yield module
    pypto.toolchain.use(None)
    del sys.modules["repeated_kernels"]


@pytest.fixture
def config(cache: Path) -> RunConfig:
    return RunConfig(cache_config=pypto.CacheConfig(enabled=True, root=cache, readonly=True))


def tables(start: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64) + np.float32(start)
    return x, np.zeros_like(x)


def counted(call: Callable[[], Any]) -> dict[str, int]:
    before = pypto.cache_stats()
    call()
    after = pypto.cache_stats()
    names = ("requests", "object_hits", "ready_hits", "misses", "disabled_requests", "bypasses")
    return {n: d for n in names if (d := getattr(after, n) - getattr(before, n))}


def answered(function: Any, *args: Any, config: RunConfig | None) -> bool:
    """Whether such a call is answered without a request."""
    calls = function.repeated
    assert isinstance(calls, RepeatedCalls)
    return calls.run(args, config) is not calls.UNKNOWN


def test_req_09_cfg_04_results_and_counters(module: ModuleType, config: RunConfig) -> None:
    def call(factor: Any, start: float = 0.0, **named: Any) -> None:
        x, out = tables(start)
        if named:
            assert module.scaled(out=out, factor=factor, x=x, config=config) is out
        else:
            assert module.scaled(x, factor, out, config=config) is out
        np.testing.assert_array_equal(out, x * np.float32(factor))

    assert counted(lambda: call(2.0)) == {"requests": 1, "ready_hits": 1}
    for factor, start in ((2.0, 0), (0.1, 5), (-0.0, 7)):
        assert counted(lambda: call(factor, start)) == {"requests": 1, "object_hits": 1}  # noqa: B023
    # An int, an infinity and names are bound by themselves and count alike.
    for value in (3, 10**30, np.float32(0.5)):
        assert counted(lambda: call(value)) == {"requests": 1, "object_hits": 1}  # noqa: B023
    assert counted(lambda: call(4.0, named=True)) == {"requests": 1, "object_hits": 1}
    assert answered(module.scaled, tables()[0], 9.0, tables()[1], config=config)


def test_wrong_arguments_after_good_ones(module: ModuleType, config: RunConfig) -> None:
    x, out = tables()
    module.scaled(x, 2.0, out, config=config)
    for args, message in (
        ((x, 2.0, x), "overlaps the memory of 'x'"),
        ((x[:, ::-1], 2.0, out), "is not contiguous"),
        ((x, "2", out), "expected a number for FP32"),
        ((x, 1e39, out), "does not fit FP32"),
        ((x[:8].copy(), 2.0, out), "by its annotation, got"),
        ((x, 2.0), "lacks out"),
    ):
        assert not isinstance(message, tuple)
        with pytest.raises((TypeError, ValueError), match=message):
            module.scaled(*args, config=config)
    assert answered(module.scaled, x, 2.0, out, config=config)


def copied(folder: Path) -> Path:
    """The same tools, chosen by another file."""
    return Path(shutil.copy(folder / "descriptor.json", folder / "copy.json"))


def rewritten(folder: Path) -> None:
    descriptor = folder / "descriptor.json"
    data = descriptor.read_bytes()
    descriptor.unlink()
    descriptor.write_bytes(data)
    os.utime(descriptor, ns=(1, 1))


CHANGES: dict[str, Change] = {
    "a variable is set": lambda patch, _: patch.setenv("PYPTO_CACHE_EPOCH", "later"),
    "a variable is gone": lambda patch, _: patch.delenv("PATH"),
    "another environment": lambda patch, _: patch.setattr(os, "environ", dict(os.environ)),
    "another folder": lambda patch, folder: patch.chdir(folder),
    "a configured cache": lambda *_: pypto.configure_cache(pypto.CacheConfig()),
    "other bundles": lambda *_: pypto.use_bundles([]),
    "a tool set that is chosen": lambda _, folder: pypto.toolchain.use(copied(folder)),
    "the tools of this machine": lambda *_: pypto.toolchain.use("host"),
    "tools that were installed anew": lambda _, folder: rewritten(folder),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_req_10_11_whatever_a_request_reads_of_the_process(
    module: ModuleType, config: RunConfig, tmp_path: Path, no_tools: Path, change: Change
) -> None:
    x, out = tables()
    module.scaled(x, 2.0, out, config=config)
    assert answered(module.scaled, x, 2.0, out, config=config)
    with pytest.MonkeyPatch.context() as patch:
        try:
            change(patch, no_tools.parent)
            assert not answered(module.scaled, x, 2.0, out, config=config)
        finally:
            pypto.configure_cache(None)
            pypto.use_bundles(None)
            pypto.toolchain.use(no_tools)
    # What is asked for now is remembered anew.
    module.scaled(x, 3.0, out, config=config)
    assert answered(module.scaled, x, 2.0, out, config=config)


def test_req_02_a_value_that_the_kernel_names(module: ModuleType, config: RunConfig) -> None:
    x, out = tables()
    module.scaled(x, 2.0, out, config=config)
    module.COLUMNS = 32  # type: ignore[attr-defined]
    assert not answered(module.scaled, x, 2.0, out, config=config)
    module.COLUMNS = 64  # type: ignore[attr-defined]
    assert answered(module.scaled, x, 2.0, out, config=config)


def test_req_10_another_policy_is_another_call(module: ModuleType, config: RunConfig, cache: Path) -> None:
    x, out = tables()
    module.scaled(x, 2.0, out, config=config)
    policy = pypto.CacheConfig(enabled=True, root=cache, readonly=True)
    equal = RunConfig(cache_config=policy)
    other = RunConfig(cache_config=pypto.CacheConfig(enabled=True, root=cache))
    # Equal settings are as good as the same.
    assert answered(module.scaled, x, 2.0, out, config=equal)
    assert counted(lambda: module.scaled(x, 2.0, out, config=equal)) == {"requests": 1, "object_hits": 1}
    assert not answered(module.scaled, x, 2.0, out, config=other)
    assert not answered(module.scaled, x, 2.0, out, config=RunConfig(cache_config=policy, rtol=1e-3))
    assert not answered(module.scaled, x, 2.0, out, config=None)
    assert counted(lambda: module.scaled(x, 2.0, out, config=other)) == {"requests": 1, "ready_hits": 1}
    for each in (config, equal, other):
        assert answered(module.scaled, x, 2.0, out, config=each)


@pytest.mark.parametrize("change", [{"sim_checks": True}, {"enable_dep_gen": True}, {"aicpu_thread_num": 1}], ids=str)
def test_settings_of_a_run(module: ModuleType, cache: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    """What more than a plain run does is never answered at once."""
    x, out = tables()
    policy = pypto.CacheConfig(enabled=True, root=cache, readonly=True)
    config = RunConfig(cache_config=policy, **change)
    for _ in range(2):
        module.scaled(x, 2.0, out, config=config)
    assert answered(module.scaled, x, 2.0, out, config=config) == ("aicpu_thread_num" in change)


def test_extra_sources_are_read_for_every_request(module: ModuleType, cache: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra.py"
    extra.write_text("1")
    policy = pypto.CacheConfig(enabled=True, root=cache, readonly=True, extra_source_paths=(extra,))
    x, out = tables()
    # A miss, and there are no tools; what matters is that nothing is remembered for the next call.
    with pytest.raises(pypto.toolchain.ToolchainError):
        module.scaled(x, 2.0, out, config=RunConfig(cache_config=policy))
    assert module.scaled.repeated is None


def test_a_bundle_needs_no_tools(module: ModuleType, bundle: Path, no_tools: Path) -> None:
    x, out = tables()
    pypto.use_bundles([bundle])
    try:
        assert counted(lambda: module.scaled(x, 2.0, out)) == {"requests": 1, "ready_hits": 1, "disabled_requests": 1}
        no_tools.unlink()
        expected = {"requests": 1, "object_hits": 1, "disabled_requests": 1}
        assert counted(lambda: module.scaled(x, 2.0, out)) == expected
        assert answered(module.scaled, x, 2.0, out, config=None)
    finally:
        pypto.use_bundles(None)
    assert not answered(module.scaled, x, 2.0, out, config=None)


def test_sta_03_many_threads(module: ModuleType, config: RunConfig) -> None:
    module.scaled(*tables()[:1], 1.0, tables()[1], config=config)
    wrong: list[Any] = []

    def calls(number: int) -> None:
        for i in range(20):
            x, out = tables(number)
            module.scaled(x, float(i), out, config=config)
            if not np.array_equal(out, x * np.float32(i)):
                wrong.append((number, i))

    def all_threads() -> None:
        threads = [threading.Thread(target=calls, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert counted(all_threads) == {"requests": 120, "object_hits": 120}
    assert wrong == []
