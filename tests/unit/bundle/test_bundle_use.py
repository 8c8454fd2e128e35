"""Choosing specializations, and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from artifact_samples import sample_environment
from bundle_samples import seal_input

from pypto.bundle import BundleDamaged, NoMatchingSpecialization, import_bundle, write_bundle
from pypto.bundle.cli import main
from pypto.runtime import prebuilt
from pypto.runtime.kernel_config import KernelConfig

ROOT = Path(__file__).parents[3]


class FakeProgram:
    """Stands for a loaded program: says which bytes it was made of."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.config = KernelConfig.from_bytes(files["kernel_config.json"])
        self.kernel = files["prebuilt/kernels/k.so"]
        self.calls: list[tuple[tuple[object, ...], object]] = []

    def __call__(self, *args: object, config: object = None) -> bytes:
        self.calls.append((args, config))
        return self.kernel


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[FakeProgram]:
    made: list[FakeProgram] = []

    def load(files: Mapping[str, bytes], **_: object) -> Any:
        made.append(FakeProgram(files))
        return made[-1]

    monkeypatch.setattr(prebuilt, "load", load)
    return made


def arguments(length: int) -> tuple[Any, ...]:
    return np.zeros((length, 8), np.float32), np.zeros((length, 8), np.float32), 3


def test_arguments_choose_the_specialization(bundle_path: Path, loads: list[FakeProgram]) -> None:
    add = import_bundle(bundle_path).load("add")
    assert add(*arguments(64)) == b"\x7fELF add 64"
    assert add(*arguments(32)) == b"\x7fELF add 32"
    assert add(*arguments(32), config="settings") == b"\x7fELF add 32"
    assert [len(program.calls) for program in loads] in ([1, 2], [2, 1])
    assert {program.calls[-1][1] for program in loads} == {None, "settings"}


def test_no_specialization_takes_the_arguments(bundle_path: Path, loads: list[FakeProgram]) -> None:
    add = import_bundle(bundle_path).load("add")
    with pytest.raises(NoMatchingSpecialization) as caught:
        add(*arguments(16))
    text = str(caught.value)
    assert "add(x: FP32[64,8], y: FP32[64,8], n: INT32)" in text
    assert "add(x: FP32[32,8], y: FP32[32,8], n: INT32)" in text
    assert "'x'" in text
    assert not any(program.calls for program in loads)


def test_several_specializations_take_the_arguments(tmp_path: Path, loads: list[FakeProgram]) -> None:
    """A fixed size and any size: nothing is guessed, and the caller can choose."""
    inputs = [seal_input(tmp_path / letter, "add", letter, size) for letter, size in (("1", "S"), ("2", 64))]
    write_bundle(tmp_path / "bundle", sample_environment(), inputs)
    bundle = import_bundle(tmp_path / "bundle")
    add = bundle.load("add")
    assert add(*arguments(32)) == b"\x7fELF add S"
    with pytest.raises(NoMatchingSpecialization) as caught:
        add(*arguments(64))
    text = str(caught.value)
    assert text.startswith("add(): 2 specializations take these arguments:\n")
    assert all(f"takes them (key {entry.key.digest})" in text for entry in bundle.entries)
    assert text.endswith("call one of them by its key: bundle.load('add').programs[KEY](...)")
    fixed = next(entry for entry in bundle.entries if "FP32[64,8]" in entry.description.signature)
    assert add.programs[fixed.key.digest](*arguments(64)) == b"\x7fELF add 64"  # type: ignore[attr-defined]
    assert sum(len(program.calls) for program in loads) == 2


def test_a_single_specialization_says_itself_what_is_wrong(bundle_path: Path, loads: list[FakeProgram]) -> None:
    bundle = import_bundle(bundle_path)
    assert bundle.load("mul")(*arguments(5)) == b"\x7fELF mul S"
    assert bundle.load("mul") is bundle.load("mul")
    assert len(loads) == 1


def test_nothing_is_loaded_from_a_damaged_entry(bundle_path: Path, loads: list[FakeProgram]) -> None:
    bundle = import_bundle(bundle_path)
    file = bundle.specializations("mul")[0].ready.directory / "prebuilt/kernels/k.so"
    good = file.read_bytes()
    file.write_bytes(good[:-1] + b"T")
    with pytest.raises(BundleDamaged, match=r"k\.so"):
        bundle.load("mul")
    assert loads == []
    file.write_bytes(good)
    bundle.load("mul")
    assert len(loads) == 1


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pypto.bundle", *arguments],
        env={"PYTHONPATH": str(ROOT), "PATH": "", **environment},
        capture_output=True,
        text=True,
    )


def test_verify_from_the_command_line(bundle_path: Path) -> None:
    done = run("verify", str(bundle_path))
    digest = import_bundle(bundle_path).digest
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{digest}\n", "")
    assert run("verify", str(bundle_path), "--digest", digest).returncode == 0
    assert run("verify", str(bundle_path), "--digest", "0" * 64).returncode == 1
    file = import_bundle(bundle_path).entries[0].ready.directory / "prebuilt/kernels/k.so"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    done = run("verify", str(bundle_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert str(file) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bundle_is_shown_by_its_place_and_its_kernels(bundle_path: Path) -> None:
    bundle = import_bundle(bundle_path)
    assert repr(bundle) == f"<Bundle {bundle_path}: {', '.join(bundle.names())}>"
    assert "add" in bundle.names()


def test_show(bundle_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = import_bundle(bundle_path)
    assert main(["show", str(bundle_path)]) == 0
    text = capsys.readouterr().out
    for part in (bundle.digest, "Ascend910B, sim", "host_build_graph", "mul(x: FP32[S,8], y: FP32[S,8], n: INT32)"):
        assert part in text
    assert main(["show", str(bundle_path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["digest"] == bundle.digest
    assert [entry["name"] for entry in record["entries"]] == ["add", "add", "mul"]
    kernel = next(f for f in record["entries"][2]["files"]["ready"] if f["path"] == "prebuilt/kernels/k.so")
    assert (kernel["size"], kernel["executable"]) == (len(b"\x7fELF mul S"), True)
    assert main(["show", str(bundle_path / "nowhere")]) == 1
    assert "no such directory" in capsys.readouterr().err


@pytest.mark.parametrize("digest", ["", "5e0c9dad", "A" * 64, "0" * 63])
def test_what_is_no_digest_is_a_wrong_command_line(
    bundle_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], digest: str
) -> None:
    for command in (["verify", str(bundle_path)], ["import", str(bundle_path), "--root", str(tmp_path / "root")]):
        with pytest.raises(SystemExit) as caught:
            main([*command, "--digest", digest])
        assert caught.value.code == 2
        assert f"expected 64 lower-case hexadecimal digits, got {digest!r}" in capsys.readouterr().err
    assert not (tmp_path / "root").exists()


def test_a_reader_that_has_seen_enough(bundle_path: Path) -> None:
    command = [sys.executable, "-m", "pypto.bundle", "show", str(bundle_path)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["verify", "--help"], ["show", "--help"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        assert "bundle" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2


def test_looking_at_a_bundle_loads_no_numpy_and_writes_nothing(bundle_path: Path, tmp_path: Path) -> None:
    """Opening needs the standard library only: no NumPy, no compiler package, no bytecode, no child process."""
    script = (
        "import sys, os; import pypto.bundle as b\n"
        "def no(*a, **k): raise SystemExit('a process was started')\n"
        "os.fork = os.posix_spawn = os.execve = no\n"
        "b.import_bundle(sys.argv[1]).verify()\n"
        "compiler = ('pypto.language', 'pypto.codegen', 'pypto.build', 'pypto.toolchain')\n"
        "names = ('numpy', 'ml_dtypes', 'subprocess', *compiler)\n"
        "print([m for m in sys.modules if m.startswith(names)])"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", script, str(bundle_path)],
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    assert not (tmp_path / "home").exists()


def test_import_command(bundle_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twice into one cache, with another digest, and into what is no folder."""
    command = ["import", str(bundle_path), "--root", str(tmp_path / "cache")]
    count = sum(1 for _ in import_bundle(bundle_path).artifacts())
    for published, present in ((count, 0), (0, count)):
        assert main(command) == 0
        assert capsys.readouterr().out == f"{published} artifacts published, {present} were there already\n"
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["artifacts", "locks"]
    assert main([*command, "--digest", "0" * 64]) == 1
    assert "0" * 64 in capsys.readouterr().err
    (tmp_path / "file").write_text("x")
    assert main(["import", str(bundle_path), "--root", str(tmp_path / "file")]) == 1
    assert "did not take the artifact" in capsys.readouterr().err
