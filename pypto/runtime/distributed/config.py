"""`DistributedConfig`: the ranks of a distributed program."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

MAX_RANKS = 64


@dataclass(frozen=True)
class DistributedConfig:
    """Settings of a distributed program. Immutable; values are coerced to their types.

    Attributes:
        device_ids: one device for each rank, in rank order; their number is the world size. On the simulator a device
            is a process, and its number only names it.
        num_sub_workers: processes for Python tasks of the HOST level. No program has such tasks here, so none is
            started whatever the number is.
        runtime: kind of orchestration runtime of every chip; ``None`` for the default.
        aicpu_thread_num: threads that run tasks, for each rank; ``None`` for ``RunConfig.aicpu_thread_num``.
        startup_timeout_s: seconds that the ranks may take to start.
        run_timeout_s: seconds that one run may take before it is ended with an error; ``None`` for no limit.
    """

    device_ids: Sequence[int]
    num_sub_workers: int = 0
    runtime: str | None = None
    aicpu_thread_num: int | None = None
    startup_timeout_s: float = 60.0
    run_timeout_s: float | None = 600.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "device_ids", _device_ids(self.device_ids))
        object.__setattr__(self, "num_sub_workers", _integer("num_sub_workers", self.num_sub_workers, 0))
        if self.aicpu_thread_num is not None:
            object.__setattr__(self, "aicpu_thread_num", _integer("aicpu_thread_num", self.aicpu_thread_num, 1))
        if self.runtime is not None and not isinstance(self.runtime, str):
            raise TypeError(f"DistributedConfig.runtime is a str, got {self.runtime!r}")
        object.__setattr__(self, "startup_timeout_s", _seconds("startup_timeout_s", self.startup_timeout_s))
        if self.run_timeout_s is not None:
            object.__setattr__(self, "run_timeout_s", _seconds("run_timeout_s", self.run_timeout_s))

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.device_ids)

    @classmethod
    def of(cls, value: Any) -> DistributedConfig:
        """The settings from themselves or from their plain form, a mapping of field names to values.

        Raises:
            TypeError, ValueError: what is wrong, by the name of the field.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise TypeError(f"RunConfig.distributed_config is a pypto.runtime.DistributedConfig, got {value!r}")
        known = [field.name for field in fields(cls)]
        unknown = next((name for name in value if name not in known), None)
        if unknown is not None:
            raise ValueError(f"DistributedConfig has no field {unknown!r}; it has {', '.join(known)}")
        if "device_ids" not in value:
            raise ValueError("DistributedConfig needs device_ids, one for each rank")
        return cls(**value)


def _device_ids(value: object) -> tuple[int, ...]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise TypeError(f"DistributedConfig.device_ids is a list of device numbers, got {value!r}")
    devices = tuple(_integer("device_ids", device, 0) for device in value)
    if not 1 <= len(devices) <= MAX_RANKS:
        raise ValueError(f"DistributedConfig.device_ids names 1 to {MAX_RANKS} devices, got {len(devices)}")
    twice = next((device for device in devices if devices.count(device) > 1), None)
    if twice is not None:
        raise ValueError(f"DistributedConfig.device_ids names device {twice} twice; every rank has its own")
    return devices


def _integer(name: str, value: object, least: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"DistributedConfig.{name} holds ints, got {value!r}")
    if number < least:
        raise ValueError(f"DistributedConfig.{name}: {least} or more is expected, got {number}")
    return number


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"DistributedConfig.{name} is a number of seconds, got {value!r}")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"DistributedConfig.{name} is a positive number of seconds, got {value!r}")
    return float(value)
