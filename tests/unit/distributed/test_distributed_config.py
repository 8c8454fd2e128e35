"""`DistributedConfig`, arguments of ranks, and the runtime that chips are built for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pypto.runtime import DistributedConfig, RunConfig, RuntimeKind
from pypto.runtime.distributed.arguments import bind_distributed
from pypto.runtime.kernel_config import Parameter

X = Parameter("x", "tensor", "in", "FP32", ("NR", 4))
Y = Parameter("y", "tensor", "out", "FP32", ("NR", 4))


def test_settings_are_coerced() -> None:
    config = DistributedConfig(np.array([3, 1]))  # type: ignore[arg-type]
    assert (config.device_ids, config.world_size, config.num_sub_workers) == ((3, 1), 2, 0)
    assert hash(config) == hash(DistributedConfig((3, 1)))
    plain = RunConfig(distributed_config={"device_ids": [0], "num_sub_workers": 2})
    assert plain.distributed_config == DistributedConfig([0], 2)


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"device_ids": []}, ValueError, "names 1 to 64 devices, got 0"),
        ({"device_ids": [0, 1, 0]}, ValueError, "names device 0 twice"),
        ({"device_ids": [-1]}, ValueError, "0 or more is expected, got -1"),
        ({"device_ids": "01"}, TypeError, "is a list of device numbers, got '01'"),
        ({"device_ids": [True]}, TypeError, "holds ints, got True"),
        ({"device_ids": [0], "num_sub_workers": -1}, ValueError, "num_sub_workers"),
        ({"device_ids": [0], "aicpu_thread_num": 0}, ValueError, "aicpu_thread_num: 1 or more"),
        ({"device_ids": [0], "run_timeout_s": 0}, ValueError, "run_timeout_s is a positive number"),
        ({"device_ids": [0], "startup_timeout_s": "1"}, TypeError, "startup_timeout_s is a number of seconds"),
        ({"device_ids": [0], "runtime": 3}, TypeError, "runtime is a str"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        DistributedConfig(**settings)


def test_a_mapping_names_fields() -> None:
    with pytest.raises(ValueError, match="has no field 'devices'; it has device_ids"):
        RunConfig(distributed_config={"devices": [0]})
    with pytest.raises(ValueError, match="needs device_ids"):
        RunConfig(distributed_config={})


def test_chips_are_built_for_its_runtime() -> None:
    ring = DistributedConfig([0], runtime="tensormap_and_ringbuffer")
    assert RunConfig(distributed_config=ring).runtime is RuntimeKind.TENSORMAP_AND_RINGBUFFER
    with pytest.raises(ValueError, match=r"contradicts distributed_config\.runtime"):
        RunConfig(distributed_config=ring, runtime="host_build_graph")


def test_lists_are_stacked_and_handed_back() -> None:
    x = [np.full(4, rank, np.float32) for rank in range(2)]
    y = [np.zeros(4, np.float32) for _ in range(2)]
    bound = bind_distributed("f", (X, Y), (x, y), 2)
    assert bound.arrays[0] is not None
    assert np.array_equal(bound.arrays[0], [[0] * 4, [1] * 4])
    bound.hand_back(1, np.array([[5] * 4, [6] * 4], np.float32))
    assert np.array_equal(y, [[5] * 4, [6] * 4])


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ([np.zeros(4, np.float32)], ValueError, "is a list of 1 arrays, but there are 2 ranks"),
        ([np.zeros(4, np.float32), np.zeros(3, np.float32)], ValueError, r"item 1 is float32 \(3,\), but item 0 is"),
        ([np.zeros(4, np.float32), 3], TypeError, "item 1 is int"),
        ([np.zeros(4, np.float32)] * 2, ValueError, "item 1 shares memory with another one"),
    ],
)
def test_lists_that_are_refused(value: list[Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        bind_distributed("f", (X, Y), (np.zeros((2, 4), np.float32), value), 2)
