"""Workers: programs and tensors that stay, calls at the same time, and what is refused."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pypto.runtime import BenchmarkResult, ChipWorker, CompiledProgram, RunConfig, benchmark
from pypto.runtime.prebuilt import load
from pypto.runtime.worker import RegisteredProgram


def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    return x, np.full_like(x, 3), np.full_like(x, -1)


def test_a_registered_program_runs_on_arrays_and_on_tensors_of_the_worker(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    with ChipWorker() as worker:
        handle = worker.register(scenarios)
        assert worker.register(scenarios) is handle
        assert handle(100, x, state, out, 0) is out
        np.testing.assert_array_equal(out, x + 7)
        resident, result = worker.alloc_tensor(x.shape, "FP32", x), worker.alloc_tensor(x.shape, np.float32)
        assert worker.run(scenarios, 100, resident, state, result, 0) is result
        np.testing.assert_array_equal(worker.copy_from(result), x + 7)
        # What one call made, the next one takes: nothing passes the host.
        handle(100, result, state, resident, 0)
        np.testing.assert_array_equal(worker.copy_from(resident), x + 14)


def test_a_plain_call_takes_tensors_of_a_worker_too(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    with ChipWorker() as worker:
        resident = worker.alloc_tensor(x.shape, "FP32", x)
        assert scenarios(100, resident, state, out, 0) is out
        np.testing.assert_array_equal(out, x + 7)
        with pytest.raises(ValueError, match=r"scenarios\(\): argument 'state' overlaps the memory of 'x'"):
            scenarios(100, resident, resident, out, 0)
        worker.free_tensor(resident)
        with pytest.raises(RuntimeError, match=r"argument 'x': <DeviceTensor FP32\[4,6\], freed>"):
            scenarios(100, resident, state, out, 0)


def test_a_worker_keeps_what_it_registered_whatever_happens_to_the_files(
    scenario_files: dict[str, bytes], tmp_path: Path
) -> None:
    for name, data in scenario_files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    x, state, out = tables()
    worker = ChipWorker()
    program = CompiledProgram.from_dir(tmp_path)
    handle = worker.register(program)
    seen = weakref.ref(program)
    del program
    shutil.rmtree(tmp_path)
    gc.collect()
    handle(100, x, state, out, 0)
    np.testing.assert_array_equal(out, x + 7)
    worker.close()
    del handle
    gc.collect()
    assert seen() is None


def test_calls_run_at_the_same_time_and_closing_waits_for_them(scenarios: CompiledProgram) -> None:
    worker = ChipWorker()
    handle = worker.register(scenarios)
    results = [tables() for _ in range(3)]
    # Each waits inside its kernel for another run.
    first, second = (threading.Thread(target=handle, args=(123, *result, 0)) for result in results[:2])
    first.start()
    second.start()
    first.join(30)
    second.join(30)
    waiting = threading.Thread(target=handle, args=(123, *results[2], 0))
    waiting.start()
    while not worker._calls:
        pass
    closing = threading.Thread(target=worker.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive()
    _, _, partner = tables()
    scenarios(123, *tables()[:2], partner, 0)
    closing.join(30)
    waiting.join(30)
    assert not closing.is_alive()
    for _, _, out in results:
        assert (out.reshape(-1)[:6] == 7).all()
    assert (partner.reshape(-1)[:6] == 7).all()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_a_worker_of_its_own(scenarios: CompiledProgram) -> None:
    worker = ChipWorker()
    handle = worker.register(scenarios)
    x, state, out = tables()
    tensor = worker.alloc_tensor(x.shape, "FP32", x)
    waiting = threading.Thread(target=handle, args=(123, *tables(), 0))
    waiting.start()
    while not worker._calls:
        pass
    child = os.fork()
    if child == 0:
        # The thread that waits is not here, so nothing has to be waited for.
        status = 1
        try:
            handle(100, tensor, state, out, 0)
            status = 0 if (out == x + 7).all() else 2
            worker.close()
        finally:
            os._exit(status)
    scenarios(123, *tables(), 0)
    waiting.join(30)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (out == -1).all()
    np.testing.assert_array_equal(worker.copy_from(tensor), x)
    worker.close()


def test_what_a_worker_refuses(scenarios: CompiledProgram, scenario_files: dict[str, bytes]) -> None:
    x, state, out = tables()
    other = ChipWorker(RunConfig(backend_type="Ascend950"))
    for act in (other.register, lambda program: other.run(program, 100, x, state, out, 0)):
        with pytest.raises(ValueError, match="'scenarios' was built for a2a3sim, and this worker is for a5sim"):
            act(scenarios)
    with ChipWorker() as worker, ChipWorker() as stranger:
        handle = stranger.register(scenarios)
        with pytest.raises(ValueError, match="is registered with another worker"):
            worker.run(handle, 100, x, state, out, 0)
        tensor = stranger.alloc_tensor(x.shape, "FP32", x)
        with pytest.raises(
            ValueError, match=r"argument 'x': <DeviceTensor FP32\[4,6\]> belongs to <ChipWorker a2a3sim>"
        ):
            worker.run(scenarios, 100, tensor, state, out, 0)
        with pytest.raises(TypeError, match=r"a worker runs what f\.compile\(\.\.\.\) or .* returns, got function"):
            worker.register(tables)  # type: ignore[arg-type]
        loaded = load(scenario_files)
        handle = worker.register(loaded)
    assert (out == -1).all()
    for act in (
        lambda: handle(100, x, state, out, 0),
        lambda: worker.run(loaded, 100, x, state, out, 0),
        lambda: worker.register(scenarios),
    ):
        with pytest.raises(RuntimeError, match="this ChipWorker is closed; make another one"):
            act()
    worker.close()


def test_settings_of_the_worker_and_of_a_call(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    with ChipWorker(RunConfig(sim_checks=True)) as worker:
        worker.run(scenarios, 122, x, state, out, 0)
        # Guarded memory is filled with what is no number.
        assert np.isnan(out).all()
        worker.run(scenarios, 100, x, state, out, 0, config=RunConfig())
        np.testing.assert_array_equal(out, x + 7)


def test_other_element_types(scenarios: CompiledProgram) -> None:
    with ChipWorker() as worker:
        half = worker.alloc_tensor([3], ml_dtypes.bfloat16, np.array([1, 2, 3], ml_dtypes.bfloat16))
        assert (half.dtype, half.shape, half.nbytes) == ("BF16", (3,), 6)
        np.testing.assert_array_equal(worker.copy_from(half).astype(float), [1, 2, 3])
        with pytest.raises(TypeError, match=r"argument 'x' has dtype bfloat16, expected a FP32 tensor"):
            worker.run(scenarios, 100, half, half, half, 0)


def test_benchmark(scenarios: CompiledProgram) -> None:
    x, state, out = tables()
    with ChipWorker() as worker:
        for compiled in (scenarios, worker.register(scenarios)):
            found = benchmark(compiled, (100, x, state, out, 0), rounds=5, warmup=1)
            assert isinstance(found, BenchmarkResult)
            for measured in (found.host_wall_us, found.device_wall_us):
                assert len(measured.values) == 5
                assert 0 < measured.min <= measured.median <= measured.max
                assert measured.min <= measured.mean <= measured.max
                assert measured.stdev >= 0
            assert "scenarios, 5 rounds" in str(found)
    np.testing.assert_array_equal(out, x + 7)
    one = benchmark(scenarios, (113, x, state, out, 0), rounds=1, warmup=0)
    assert one.host_wall_us.stdev == 0
    with pytest.raises(ValueError, match="one round at least"):
        benchmark(scenarios, (113, x, state, out, 0), rounds=0)
    with pytest.raises(TypeError, match=r"config is a pypto\.runtime.RunConfig, got 'sim'"):
        scenarios(113, x, state, out, 0, config="sim")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"benchmark: rounds is an int, got 2\.5"):
        benchmark(scenarios, (113, x, state, out, 0), rounds=2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="benchmark takes the arguments of a call as a list or tuple, got NoneType"):
        benchmark(scenarios, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"benchmark takes what f\.compile\(\.\.\.\) returns, got function"):
        benchmark(tables, ())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not worth timing"):
        benchmark(scenarios, (113, x, state, out, 0), config=RunConfig(sim_checks=True), warmup=0)


def test_handles_say_what_they_are(scenarios: CompiledProgram) -> None:
    worker = ChipWorker()
    handle = worker.register(scenarios)
    assert isinstance(handle, RegisteredProgram)
    assert repr(handle) == "<RegisteredProgram scenarios of <ChipWorker a2a3sim>>"
    worker.close()
    assert repr(worker) == "<ChipWorker a2a3sim, closed>"
