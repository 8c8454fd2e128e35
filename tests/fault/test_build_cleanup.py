"""A build that is ended from outside leaves no private root and no tool behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pypto.toolchain.cleanup import private_folder

WORKER = Path(__file__).with_name("build_worker.py")
ROOT = Path(__file__).resolve().parents[2]


def start(folder: Path, names: list[str]) -> tuple[subprocess.Popen[bytes], list[int]]:
    """A process in the middle of building, and the ids of its tools."""
    (folder / "roots").mkdir(exist_ok=True)
    child = subprocess.Popen(
        [sys.executable, WORKER, *names],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    tools = [folder / f"{name}.pid" for name in names if not name.startswith("--")]
    wait_for(lambda: all(tool.exists() for tool in tools))
    return child, [int(tool.read_text()) for tool in tools]


def wait_for(condition: object) -> None:
    for _ in range(600):
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in 30 s")


def is_gone(group: int) -> bool:
    """Whether no process of the group runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_tools_and_removes_roots(tmp_path: Path, names: list[str], number: signal.Signals) -> None:
    """KC-28: whether the tools run in the main thread or in others."""
    child, tools = start(tmp_path, names)
    assert len(os.listdir(tmp_path / "roots")) == len(names)
    child.send_signal(number)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == -number
    assert os.listdir(tmp_path / "roots") == []
    wait_for(lambda: all(is_gone(tool) for tool in tools))
    assert (b"KeyboardInterrupt" in errors) == (number == signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_a_tool_is_started(tmp_path: Path, number: signal.Signals) -> None:
    """KC-55: the tool runs already, and its starter does not know it yet."""
    child, tools = start(tmp_path, [f"--early={number.value}", "one"])
    child.communicate(timeout=30)
    assert child.returncode == -number
    assert os.listdir(tmp_path / "roots") == []
    wait_for(lambda: all(is_gone(tool) for tool in tools))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_while_only_other_threads_build(tmp_path: Path, number: signal.Signals) -> None:
    """KC-28, KC-55: the main thread cannot clean up, or no thread can; what is left is removed all the same."""
    child, tools = start(tmp_path, ["--elsewhere", "one", "two"])
    assert len(os.listdir(tmp_path / "roots")) == 2
    child.send_signal(number)
    child.communicate(timeout=30)
    assert child.returncode == -number
    wait_for(lambda: all(is_gone(tool) for tool in tools))
    wait_for(lambda: os.listdir(tmp_path / "roots") == [])


def test_the_watcher_ends_with_the_last_build(tmp_path: Path) -> None:
    """It is no child of an idle process, and touches nothing that its process gave up."""
    script = (
        "import os, threading\n"
        "from pypto.toolchain.cleanup import private_folder\n"
        "def build():\n"
        "    with private_folder('.') as first, private_folder('.') as second: pass\n"
        "    os.mkdir(first), os.mkdir(second)\n"
        "    print(first, second, flush=True)\n"
        "thread = threading.Thread(target=build)\n"
        "thread.start()\n"
        "thread.join()\n"
        "try:\n"
        "    print(os.waitpid(-1, os.WNOHANG))\n"
        "except ChildProcessError:\n"
        "    print('no child', flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    folders, children = done.stdout.splitlines()
    assert children == "no child"
    assert all(Path(folder).is_dir() for folder in folders.split())


def test_sigterm_unwinds_what_was_made_around_the_build(tmp_path: Path) -> None:
    """And then ends the process by the signal, as without any handler."""
    child, tools = start(tmp_path, ["--around", "one", "two"])
    assert len(os.listdir(tmp_path / "roots")) == 3
    child.terminate()
    _, errors = child.communicate(timeout=30)
    assert (child.returncode, errors) == (-signal.SIGTERM, b"")
    assert os.listdir(tmp_path / "roots") == []
    wait_for(lambda: all(is_gone(tool) for tool in tools))


def test_a_second_sigterm_does_not_wait(tmp_path: Path) -> None:
    child, tools = start(tmp_path, ["--stuck", "one"])
    child.terminate()
    wait_for(lambda: (tmp_path / "stuck").exists())
    child.terminate()
    child.communicate(timeout=30)
    assert child.returncode == -signal.SIGTERM
    wait_for(lambda: all(is_gone(tool) for tool in tools))


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    child, tools = start(tmp_path, ["one"])
    child.kill()
    child.communicate()
    for tool in tools:
        os.killpg(tool, signal.SIGKILL)
    (left,) = (tmp_path / "roots").iterdir()
    alive, others = start(tmp_path, ["two"])
    (other,) = set((tmp_path / "roots").iterdir()) - {left}
    try:
        assert left.exists(), "a young folder may belong to a process that has not locked it yet"
        for folder in (left, other):
            os.utime(folder, (0, 0))
        script = "from pypto.toolchain.cleanup import private_folder\nwith private_folder('roots'): pass"
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, check=True)
        assert os.listdir(tmp_path / "roots") == [other.name], "a root whose process lives stays"
    finally:
        alive.terminate()
        alive.communicate()
    wait_for(lambda: all(is_gone(tool) for tool in others))


def test_a_program_that_handles_sigterm_itself_is_left_alone(tmp_path: Path) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with private_folder(tmp_path) as folder:
            os.kill(os.getpid(), signal.SIGTERM)
            assert seen == [signal.SIGTERM] and folder.exists()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert os.listdir(tmp_path) == []
