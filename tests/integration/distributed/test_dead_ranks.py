"""A rank that fails, dies or never ends: one error that names it, and nothing is left of the run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rank_programs
from rank_processes import children
from rank_programs import COLUMNS, ROWS, around_the_ring, some_misbehave

from pypto.runtime import DistributedConfig, HostProgramError, LoadError, RankError, RunConfig

KILLED, EXITS, ENDLESS, FAILS, ABORTS = 1, 2, 3, 4, 5
HERE = Path(__file__).parent


def on(devices: list[int], **settings: Any) -> RunConfig:
    return RunConfig(distributed_config=DistributedConfig(devices, **settings))


def arguments(*how: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.ones((len(how), ROWS, COLUMNS), np.float32)
    return x, np.array(how, np.int32), np.full_like(x, 7)


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        (KILLED, "was ended by SIGKILL"),
        (EXITS, "exited with status 7"),
        (ABORTS, "was ended by SIGABRT"),
    ],
)
def test_a_rank_that_dies_is_named_with_what_it_was_at(how: int, cause: str) -> None:
    x, what, y = arguments(0, 0, how, 0)
    with pytest.raises(RankError) as caught:
        some_misbehave(x, what, y, config=on([3, 2, 9, 0]))
    error = caught.value
    assert (error.rank, error.device_id, error.cause) == (2, 9, cause)
    line = next(
        n for n, text in enumerate(Path(rank_programs.__file__).read_text().splitlines(), 1) if "how[r]" in text
    )
    place = f"maybe_misbehave (some_misbehave, {rank_programs.__file__}:{line})"
    assert str(error) == f"some_misbehave: rank 2 (device 9) {cause} in {place}"
    assert (y == 7).all(), "outputs change only if a run succeeds"


def test_a_task_that_fails_is_named_as_in_a_program_of_one_chip() -> None:
    x, what, y = arguments(0, FAILS)
    with pytest.raises(RankError) as caught:
        some_misbehave(x, what, y, config=on([0, 1]))
    error = caught.value
    assert (error.rank, error.task, error.function) == (1, "misbehave", "maybe_misbehave")
    assert "rank 1 (device 1) failed: maybe_misbehave: task 'misbehave'" in str(error)
    assert "as it was told" in str(error)
    assert f"{rank_programs.__file__}:" in str(error)


def test_a_rank_that_never_ends_is_ended_in_time() -> None:
    x, what, y = arguments(0, ENDLESS, 0)
    with pytest.raises(RankError) as caught:
        some_misbehave(x, what, y, config=on([0, 1, 2], run_timeout_s=4))
    error = caught.value
    assert (error.rank, error.cause) == (1, "did not finish within 4 s")
    assert "in maybe_misbehave (some_misbehave, " in str(error)
    assert "; ranks 0, 2 waited" in str(error)


def test_a_worker_whose_rank_dies_between_calls() -> None:
    with some_misbehave.compile(config=on([0, 1])).prepare() as worker:
        worker(*arguments(0, 0))
        os.kill(worker.processes[1], signal.SIGKILL)
        with pytest.raises(RankError, match=r"rank 1 \(device 1\) was ended by SIGKILL"):
            worker(*arguments(0, 0))
        with pytest.raises(RuntimeError, match="ended with an error; prepare another one"):
            worker(*arguments(0, 0))


def test_a_supervisor_that_is_killed_takes_its_ranks_along() -> None:
    program = some_misbehave.compile(config=on([0, 1]))
    before = children()
    with program.prepare() as worker:
        (supervisor,) = children() - before
        os.kill(supervisor, signal.SIGKILL)
        with pytest.raises(LoadError, match="watches over the ranks was ended by SIGKILL"):
            worker(*arguments(0, 0))
        _gone(worker.processes)


def test_ranks_that_do_not_start_in_time() -> None:
    with pytest.raises(LoadError, match=r"did not start within 0\.001 s; DistributedConfig.startup_timeout_s"):
        some_misbehave(*arguments(0, 0), config=on([0, 1], startup_timeout_s=0.001))


CALLER = """
import sys, threading, time, os, signal
from pathlib import Path
import numpy as np
import pypto
from rank_programs import some_misbehave
from pypto.runtime import DistributedConfig, RunConfig
pypto.configure_cache(pypto.CacheConfig(enabled=True, root=Path(sys.argv[1])))
config = RunConfig(distributed_config=DistributedConfig([0, 1]))
x = np.ones((2, 4, 8), np.float32)
with some_misbehave.compile(config=config).prepare() as worker:
    print(*worker.processes, flush=True)
    worker(x, np.array([0, 3], np.int32), np.zeros_like(x))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_caller_that_ends_takes_its_ranks_along(number: signal.Signals, store: Path, tmp_path: Path) -> None:
    some_misbehave.warmup()
    program = tmp_path / "caller.py"
    program.write_text(CALLER)
    folders = os.pathsep.join([str(HERE), str(HERE.parents[2])])
    caller = subprocess.Popen(
        [sys.executable, str(program), str(store)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": folders},
    )
    assert caller.stdout is not None
    processes = tuple(map(int, caller.stdout.readline().split()))
    assert len(processes) == 2
    time.sleep(0.3)
    caller.send_signal(number)
    _, said = caller.communicate(timeout=30)
    assert caller.returncode == -number
    assert ("KeyboardInterrupt" in said) == (number is signal.SIGINT)
    _gone(processes)


def test_ctrl_c_in_a_call_ends_the_ranks() -> None:
    x, what, y = arguments(0, ENDLESS)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            some_misbehave(x, what, y, config=on([0, 1]))
    finally:
        timer.join()


def test_what_does_not_fit_is_said_before_a_rank_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = some_misbehave.compile()
    x, what, y = arguments(0, 0)
    with pytest.raises(ValueError, match=r"is a distributed program: say on which devices it runs"):
        compiled(x, what, y)
    compiled.ensure_ready()

    def start(*_: object) -> None:
        raise AssertionError("no rank may start")

    monkeypatch.setattr("pypto.runtime.distributed.program.Ranks", start)
    monkeypatch.setattr("pypto.runtime.distributed.ranks.subprocess.Popen", start)
    with pytest.raises(
        HostProgramError, match=r"index 2 is outside of axis 0 of length 2; the program runs on 3 ranks \("
    ):
        compiled(x, what, y, config=on([0, 1, 2]))


def _gone(processes: tuple[int, ...]) -> None:
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{process}").exists() and not _ended(process) for process in processes):
        assert time.monotonic() < deadline, "ranks outlive whoever started them"
        time.sleep(0.01)


def _ended(process: int) -> bool:
    """Whether a process has ended and only waits for its new parent to notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _kill_at_random(seed: int) -> str:
    """One worker, one rank killed (or stopped for good) at a random time; what came of the calls."""
    chosen = random.Random(seed)
    world, laps = chosen.randint(1, 4), chosen.randint(1, 30)
    config = on(list(range(world)), run_timeout_s=20)
    x, y = np.zeros((ROWS, COLUMNS), np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    with around_the_ring.compile(config=config).prepare() as worker:
        victim = chosen.randrange(world)
        timer = threading.Timer(chosen.uniform(0, 0.05), os.kill, (worker.processes[victim], signal.SIGKILL))
        timer.start()
        try:
            for _ in range(10_000):
                worker(x, y, laps)
                assert (y == laps * world + 1).all()
        except RankError as error:
            assert (error.rank, error.cause) == (victim, "was ended by SIGKILL")
            return "named"
        finally:
            timer.join()
    return "not killed"


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 40)] + [0, 1, 2])
def test_a_rank_that_is_killed_at_any_time_is_named(seed: int) -> None:
    assert _kill_at_random(seed) == "named"
