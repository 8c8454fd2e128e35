"""How long calls of a compiled kernel take."""

from __future__ import annotations

import operator
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pypto.runtime.compiled import CompiledKernel
from pypto.runtime.config import RunConfig
from pypto.runtime.program import CompiledProgram
from pypto.runtime.worker import RegisteredProgram


@dataclass(frozen=True)
class Statistics:
    """Microseconds of the rounds.

    Attributes:
        values: each round's, in order.
    """

    values: tuple[float, ...]

    @property
    def min(self) -> float:
        """The shortest."""
        return min(self.values)

    @property
    def median(self) -> float:
        """Half of the rounds took longer."""
        return statistics.median(self.values)

    @property
    def mean(self) -> float:
        """The average."""
        return statistics.fmean(self.values)

    @property
    def max(self) -> float:
        """The longest."""
        return max(self.values)

    @property
    def stdev(self) -> float:
        """Standard deviation of the sample; 0 for a single round."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    def __str__(self) -> str:
        return (
            f"min {self.min:.1f}, median {self.median:.1f}, mean {self.mean:.1f}, max {self.max:.1f}, "
            f"stdev {self.stdev:.1f} µs"
        )


@dataclass(frozen=True)
class BenchmarkResult:
    """What `benchmark` measured.

    Attributes:
        entry: the entry's name.
        host_wall_us: whole calls, from Python to Python.
        device_wall_us: from the start of the orchestration to the end of the last task; on the simulator its own time.
    """

    entry: str
    host_wall_us: Statistics
    device_wall_us: Statistics

    def __str__(self) -> str:
        return (
            f"{self.entry}, {len(self.host_wall_us.values)} rounds\n"
            f"  host wall:   {self.host_wall_us}\n"
            f"  device wall: {self.device_wall_us}"
        )


def benchmark(
    compiled: CompiledKernel | CompiledProgram | RegisteredProgram,
    args: Sequence[object],
    rounds: int = 100,
    warmup: int = 3,
    config: RunConfig | None = None,
) -> BenchmarkResult:
    """Time calls with the same arguments, one after the other. What the kernel writes, it writes each time.

    Args:
        rounds: calls that are measured on the host, and again on the device.
        warmup: calls before them that are not.

    Raises:
        TypeError: something that cannot be called.
        ValueError: no round, or settings under which times mean nothing.
        Whatever a call raises.
    """
    if isinstance(compiled, CompiledKernel):
        program = compiled.load()
    elif isinstance(compiled, RegisteredProgram):
        program = compiled.program
    elif isinstance(compiled, CompiledProgram):
        program = compiled
    else:
        raise TypeError(f"benchmark takes what f.compile(...) returns, got {type(compiled).__name__}")
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"benchmark takes the arguments of a call as a list or tuple, got {type(args).__name__}")
    rounds, warmup = _count("rounds", rounds), _count("warmup", warmup)
    if rounds < 1 or warmup < 0:
        raise ValueError(f"benchmark needs one round at least and no negative warmup, got {rounds} and {warmup}")
    for _ in range(warmup):
        program(*args, config=config)
    host = []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        program(*args, config=config)
        host.append((time.perf_counter_ns() - began) / 1000)
    # Calls of their own: what tells the time on the device takes some itself.
    device = [program.timed(*args, config=config)[1] / 1000 for _ in range(rounds)]
    return BenchmarkResult(program.config.entry, Statistics(tuple(host)), Statistics(tuple(device)))


def _count(name: str, value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"benchmark: {name} is an int, got {value!r}") from None
