"""The persistent worker without Bazel: both protocols, and that no request sees another one. Issue 6."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from workspaces import ROOT, Workspace, copy_checkout, load_program, tree

STEP = ROOT / "rules/private/step.py"


@pytest.fixture
def start() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(STEP), "--persistent_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    yield process
    process.kill()
    process.wait()


def program(tmp_path: Path, text: str) -> str:
    path = tmp_path / "program.py"
    path.write_text(text)
    return str(path)


# Says how often it ran in this process, leaves a module behind, and fails or dies when it is told to.
TEXT = """\
import os, sys
first = "left_behind" not in sys.modules
sys.modules["left_behind"] = sys
print("first" if first else "again", *sys.argv[1:])
sys.stderr.write(os.getcwd() + "/place.py:3: note\\n")
if "fail" in sys.argv: sys.exit("it failed")
if "raise" in sys.argv: raise ValueError("wrong")
if "die" in sys.argv: os.kill(os.getpid(), 9)
"""


def test_json(start: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Every request runs in a process of its own; status and output are those of the step."""
    assert start.stdin is not None and start.stdout is not None
    path = program(tmp_path, TEXT)
    (tmp_path / "arguments").write_text("fail\nä b\n")

    def ask(*arguments: str, request_id: int = 0) -> dict[str, object]:
        assert start.stdin is not None and start.stdout is not None
        request = {"arguments": [path, *arguments], "requestId": request_id, "inputs": [{"path": "x", "digest": "y"}]}
        start.stdin.write(json.dumps(request).encode() + b"\n")
        start.stdin.flush()
        return json.loads(start.stdout.readline())  # type: ignore[no-any-return]

    assert ask("one", request_id=7) == {"exitCode": 0, "output": "place.py:3: note\nfirst one\n", "requestId": 7}
    assert ask("two")["output"] == "place.py:3: note\nfirst two\n"
    failed = ask(f"@{tmp_path}/arguments")
    assert failed["exitCode"] == 1
    assert "it failed" in str(failed["output"]) and "first fail ä b" in str(failed["output"])
    raised = ask("raise")
    assert raised["exitCode"] == 1 and "ValueError: wrong" in str(raised["output"])
    died = ask("die")
    assert died["exitCode"] == 137 and "ended by signal 9" in str(died["output"])
    assert ask("six")["exitCode"] == 0
    start.stdin.close()
    assert start.wait(30) == 0


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


@pytest.mark.parametrize("padding", [0, 300])
def test_proto(start: subprocess.Popen[bytes], tmp_path: Path, padding: int) -> None:
    """Requests with fields that are of no interest, of any length; also of 123 bytes, which is `{`."""
    assert start.stdin is not None and start.stdout is not None
    path = program(tmp_path, TEXT)
    message = _field(1, path.encode()) + _field(1, "ä".encode()) + b"\x18" + _varint(300) + b"\x28\x0a"
    message += _field(2, _field(1, b"input" + b"x" * padding) + _field(2, b"digest"))
    if not padding:
        message += _field(6, b"s" * (123 - len(message) - 2)) if len(message) < 121 else b""
    start.stdin.write(_varint(len(message)) + message)
    start.stdin.close()
    answer = start.stdout.read()
    output = "place.py:3: note\nfirst ä\n".encode()
    expected = _field(2, output) + b"\x18" + _varint(300)
    assert answer == _varint(len(expected)) + expected
    assert start.wait(30) == 0


def test_channels_are_told_apart() -> None:
    """A request whose length is the code of `{` is no JSON."""
    worker = load_program("rules/private/worker.py")
    message = _field(1, b"a" * 121)
    assert len(message) == 0x7B
    proto = worker.channel(io.BufferedReader(io.BytesIO(_varint(len(message)) + message)), io.BytesIO())
    assert isinstance(proto, worker.ProtoChannel)
    assert proto.read() == worker.Request(["a" * 121])
    assert proto.read() is None
    line = io.BufferedReader(io.BytesIO(b'{"arguments": ["a"]}\n'))
    assert worker.channel(line, io.BytesIO()).read() == worker.Request(["a"])


@pytest.mark.long
def test_workers_give_the_same_bytes(tmp_path: Path) -> None:
    """Without workers, and with both protocols: equal bundles; every step really ran in a worker."""
    copy = copy_checkout(tmp_path / "copy")
    workspace = Workspace(copy, launcher=copy / "tools/bazel", output_base=tmp_path / "output")
    trees = []
    try:
        for flags in ((), ("--config=worker",), ("--config=worker", "--//rules:persistent_workers=proto")):
            spawns = workspace.spawns(*flags, "//kernels:add_a2a3")
            runners = {spawn["runner"] for spawn in spawns if spawn["mnemonic"].startswith("Pypto")}
            assert runners == {"worker" if flags else "linux-sandbox"}
            trees.append(tree(workspace.output("kernels/add_a2a3.bundle")))
    finally:
        workspace.remove()
    assert trees[0] == trees[1] == trees[2]
