"""RunConfig: targets, coercion, contradictions."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto.runtime import (
    BackendType,
    ExecutionMode,
    MemoryPlanner,
    OptimizationStrategy,
    RunConfig,
    RuntimeKind,
)


def test_the_default_is_the_simulator_of_a2a3() -> None:
    config = RunConfig()
    assert config.backend_type is BackendType.Ascend910B
    assert config.execution_mode is ExecutionMode.SIM
    assert config.strategy is OptimizationStrategy.Default
    assert config.memory_planner is None
    assert config.platform_name == "a2a3sim"
    assert (config.rtol, config.atol, config.device_id, config.sim_checks) == (1e-5, 1e-5, 0, False)


@pytest.mark.parametrize(
    ("backend", "mode", "platform"),
    [
        ("Ascend910B", "device", "a2a3"),
        ("Ascend910B", "sim", "a2a3sim"),
        ("Ascend950", "device", "a5"),
        ("Ascend950", "sim", "a5sim"),
    ],
)
def test_legacy_platform_words(backend: str, mode: str, platform: str) -> None:
    """Each word means one target, warns, and points at the line that wrote it."""
    with pytest.warns(DeprecationWarning, match=f"backend_type='{backend}', execution_mode='{mode}'") as record:
        legacy = RunConfig(platform=platform)
    assert record[0].filename == __file__
    assert legacy == RunConfig(backend_type=backend, execution_mode=mode)
    assert legacy.platform_name == platform


def test_legacy_platform_with_what_it_means_is_no_contradiction() -> None:
    with pytest.warns(DeprecationWarning):
        config = RunConfig(platform="a5sim", backend_type="Ascend950", execution_mode=ExecutionMode.SIM)
    assert config.platform_name == "a5sim"


def test_replace_changes_the_target_without_a_warning() -> None:
    with pytest.warns(DeprecationWarning):
        legacy = RunConfig(platform="a5sim")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dataclasses.replace(legacy, execution_mode="device").platform_name == "a5"


def test_values_are_coerced_to_their_types() -> None:
    config = RunConfig(
        device_id=np.int64(3),
        memory_planner="PTOAS",
        rtol=np.float32(0.5),
        atol=1,
        sim_checks=np.bool_(True),
        save_kernels=True,
        save_kernels_dir=Path("kept"),
    )
    assert config.device_id == 3 and type(config.device_id) is int
    assert config.memory_planner is MemoryPlanner.PTOAS
    assert config.rtol == 0.5 and type(config.rtol) is float
    assert config.atol == 1.0 and type(config.atol) is float
    assert config.sim_checks is True
    assert config.save_kernels_dir == "kept"


def test_equal_settings_are_equal_and_hash_alike() -> None:
    assert RunConfig(execution_mode="sim", rtol=1) == RunConfig(execution_mode=ExecutionMode.SIM, rtol=1.0)
    assert hash(RunConfig(execution_mode="sim")) == hash(RunConfig())
    assert RunConfig(device_id=1) != RunConfig()


def test_a_config_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunConfig().device_id = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"platform": "a9"}, ValueError, "a2a3 or a2a3sim or a5 or a5sim, got 'a9'"),
        ({"platform": "a5", "execution_mode": "sim"}, ValueError, "contradicts execution_mode='sim'"),
        ({"platform": "a5", "backend_type": "Ascend910B"}, ValueError, "contradicts backend_type='Ascend910B'"),
        ({"platform": 5}, TypeError, "RunConfig.platform is a str"),
        ({"backend_type": "Ascend310"}, ValueError, "'Ascend910B' or 'Ascend950', got 'Ascend310'"),
        ({"execution_mode": BackendType.Ascend950}, ValueError, "'sim' or 'device'"),
        ({"strategy": "Fast"}, ValueError, "RunConfig.strategy"),
        ({"memory_planner": ""}, ValueError, "RunConfig.memory_planner"),
        ({"device_id": -1}, ValueError, "RunConfig.device_id is 0 or more, got -1"),
        ({"device_id": True}, TypeError, "RunConfig.device_id is an int"),
        ({"device_id": 1.0}, TypeError, "RunConfig.device_id is an int, got 1.0"),
        ({"aicpu_thread_num": 0}, ValueError, "1 or more"),
        ({"sim_checks": 1}, TypeError, "RunConfig.sim_checks is True or False, got 1"),
        ({"sim_checks": "no"}, TypeError, "RunConfig.sim_checks"),
        ({"rtol": -1e-3}, ValueError, "RunConfig.rtol"),
        ({"atol": float("nan")}, ValueError, "RunConfig.atol"),
        ({"atol": "1"}, TypeError, "RunConfig.atol is a number"),
        ({"save_kernels_dir": 3}, TypeError, "RunConfig.save_kernels_dir is a path"),
        ({"execution_mode": "device", "sim_checks": True}, ValueError, "sim_checks needs execution_mode='sim'"),
        ({"enable_chip_swimlane": 1, "sim_checks": True}, ValueError, "enable_chip_swimlane cannot watch a run"),
        ({"enable_dep_gen": True, "sim_checks": True}, ValueError, "enable_dep_gen cannot watch"),
        ({"enable_scope_stats": True, "sim_checks": True}, ValueError, "enable_scope_stats cannot watch"),
        ({"ring_heap": 4, "runtime": "host_build_graph"}, ValueError, "ring_heap is a size of the runtime 'tensormap"),
        ({"ring_dep_pool": 0}, ValueError, "RunConfig.ring_dep_pool is 1 or more, got 0"),
        ({"ring_task_window": 1 << 32}, ValueError, "RunConfig.ring_task_window is 4294967295 at most"),
        ({"runtime": "ring"}, ValueError, "RunConfig.runtime is 'host_build_graph' or 'tensormap_and_ringbuffer'"),
        ({"distributed_config": object()}, TypeError, "distributed_config is a pypto.runtime.DistributedConfig"),
        ({"cache_config": "no"}, TypeError, "pypto.CacheConfig"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        RunConfig(**settings)
    assert words in str(caught.value)


def test_sizes_of_the_ring_choose_its_runtime() -> None:
    assert RunConfig().runtime is None
    assert RunConfig(runtime="tensormap_and_ringbuffer").runtime is RuntimeKind.TENSORMAP_AND_RINGBUFFER
    assert RunConfig(ring_task_window=4).runtime is RuntimeKind.TENSORMAP_AND_RINGBUFFER


def test_a_device_config_takes_device_diagnostics() -> None:
    assert RunConfig(execution_mode="device", enable_dep_gen=True).enable_dep_gen is True


def test_importing_the_runtime_loads_no_numpy() -> None:
    code = "import sys, pypto.runtime as r; r.RunConfig(); sys.exit('numpy' in sys.modules)"
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
