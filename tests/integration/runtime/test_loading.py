"""Loading from bytes: what is refused, what stays of it, and that nothing is written."""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto._identity.records import canonical_json
from pypto.runtime import BackendType, CompiledProgram, DeviceUnavailable, LoadError, shared_objects
from pypto.runtime.elf import read_shared_object
from pypto.runtime.kernel_config import CONFIG_FILE, MANIFEST_FILE
from pypto.runtime.prebuilt import load

Files = dict[str, bytes]
ADD = "prebuilt/kernels/add.so"
ENTRY = "prebuilt/orchestration/scenarios.so"


def run(program: CompiledProgram) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = np.zeros_like(x)
    program(100, x, np.zeros_like(x), out, 0)
    np.testing.assert_array_equal(out, x + 7)


def loaded_objects() -> int:
    return len(
        {line.split()[4] for line in Path("/proc/self/maps").read_text().splitlines() if "/memfd:prebuilt" in line}
    )


def write(files: Files, folder: Path) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def changed(files: Files, name: str, change: Callable[[Any], None]) -> Files:
    value = json.loads(files[name])
    change(value)
    return files | {name: canonical_json(value)}


def test_attributes(scenarios: CompiledProgram, scenario_files: Files) -> None:
    assert scenarios.platform == "a2a3sim"
    assert scenarios.backend_type is BackendType.Ascend910B
    assert scenarios.param_names == ("scenario", "x", "state", "out", "n")
    assert scenarios.output_indices == (2, 3)
    assert scenarios.has_return is True
    assert scenarios.orchestration_names == ("scenarios",)
    assert scenarios.output_dir is None and scenarios.program is None


def test_returns_of_none_and_of_several(ready_files: Callable[..., Files], scenario_files: Files) -> None:
    x = np.zeros((2, 3), np.float32)
    state, out = x.copy(), x.copy()
    none = load(changed(scenario_files, CONFIG_FILE, lambda c: c.update(returns=[])))
    assert none(113, x, state, out, 0) is None and none.has_return is False
    both = load(changed(scenario_files, CONFIG_FILE, lambda c: c.update(returns=[3, 2])))
    assert [id(value) for value in both(113, x, state, out, 0)] == [id(out), id(state)]  # type: ignore[attr-defined]


def test_a_directory(scenario_files: Files, tmp_path: Path) -> None:
    program = CompiledProgram.from_dir(write(scenario_files, tmp_path))
    assert program.output_dir == tmp_path
    run(program)


def test_files_that_change_after_loading_do_not_matter(scenario_files: Files, tmp_path: Path) -> None:
    program = CompiledProgram.from_dir(write(scenario_files, tmp_path))
    for name in scenario_files:
        (tmp_path / name).write_bytes(b"rubbish")
    run(program)


@pytest.mark.parametrize("name", [CONFIG_FILE, MANIFEST_FILE, ADD, ENTRY])
def test_a_missing_file(scenario_files: Files, tmp_path: Path, name: str) -> None:
    with pytest.raises(LoadError, match=f"^{name} is missing"):
        load({path: data for path, data in scenario_files.items() if path != name})
    write(scenario_files, tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(LoadError, match=f"{name}|its binaries are not built"):
        CompiledProgram.from_dir(tmp_path)


@pytest.mark.parametrize("name", [ADD, ENTRY])
@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b[:-1] + bytes([b[-1] ^ 1]), lambda b: b"", lambda b: b + b"\0"]
)
def test_a_damaged_binary_is_not_loaded(scenario_files: Files, name: str, damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(LoadError, match=f"^{name} is n"):
        load(scenario_files | {name: damage(scenario_files[name])})


def test_binaries_in_each_others_place(scenario_files: Files) -> None:
    other = "prebuilt/kernels/copy.so"
    swapped = scenario_files | {ADD: scenario_files[other], other: scenario_files[ADD]}
    with pytest.raises(LoadError, match=r"is not the binary that binary_manifest\.json lists"):
        load(swapped)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (MANIFEST_FILE, lambda m: m.update(platform="a5sim"), "says platform 'a5sim'"),
        (MANIFEST_FILE, lambda m: m.update(runtime_abi=2), "says runtime_abi 2"),
        (MANIFEST_FILE, lambda m: m.update(schema=9), "schema"),
        (MANIFEST_FILE, lambda m: m["binaries"].pop(0), "it is not listed"),
        (MANIFEST_FILE, lambda m: m["binaries"].append(m["binaries"][0] | {"path": "x.so"}), "does not have"),
        (MANIFEST_FILE, lambda m: m["binaries"][0].update(core="aic"), "core is 'aiv', listed is 'aic'"),
        (MANIFEST_FILE, lambda m: m["binaries"][0].update(function_id=7), "function_id"),
        (MANIFEST_FILE, lambda m: m["binaries"][0].update(extra=7), "unknown fields"),
        (CONFIG_FILE, lambda c: c.update(schema=9), "has schema 9"),
        (CONFIG_FILE, lambda c: c.pop("entry"), "the field 'entry' is None"),
        (CONFIG_FILE, lambda c: c["params"][1].update(dtype="FP7"), "'FP7'"),
        (CONFIG_FILE, lambda c: c["params"][1].update(shape=[0]), "neither a positive int nor a name"),
        (CONFIG_FILE, lambda c: c["params"][1].update(shape=[1] * 9), "rank 9"),
        (CONFIG_FILE, lambda c: c["params"][0].update(direction="out"), "'direction'"),
        (CONFIG_FILE, lambda c: c["params"][1].update(name="n"), "'n' stands twice"),
        (CONFIG_FILE, lambda c: c["kernels"][1].update(id=0), "function id 0 stands twice"),
        (CONFIG_FILE, lambda c: c.update(returns=[1]), "returns names parameter 1"),
        (
            CONFIG_FILE,
            lambda c: c["params"].pop(),
            "scenarios.so is not the binary that",
        ),
    ],
)
def test_records_that_do_not_fit(scenario_files: Files, name: str, change: Callable[[Any], None], words: str) -> None:
    with pytest.raises(LoadError) as caught:
        load(changed(scenario_files, name, change))
    assert words in str(caught.value)


def test_other_spellings_of_the_records_are_refused(scenario_files: Files) -> None:
    for name in (CONFIG_FILE, MANIFEST_FILE):
        for data in (scenario_files[name] + b"\n", scenario_files[name].replace(b":", b": ", 1), b"{", b"[]"):
            with pytest.raises(LoadError):
                load(scenario_files | {name: data})


def test_another_runtime_abi_is_named(ready_files: Callable[..., Files]) -> None:
    files = ready_files("scripted", [], ["mix"], runtime_abi=2)
    with pytest.raises(LoadError, match="built for runtime ABI 2, this PyPTO speaks 1; build it again"):
        load(files)


def test_another_machine_is_named(scenario_files: Files) -> None:
    from pypto.runtime.binary_manifest import write_manifest
    from pypto.runtime.kernel_config import KernelConfig

    foreign = bytearray(scenario_files[ADD])
    foreign[18:20] = (183).to_bytes(2, "little")
    files = scenario_files | {ADD: bytes(foreign)}
    files[MANIFEST_FILE] = write_manifest(KernelConfig.from_bytes(files[CONFIG_FILE]), files)
    with pytest.raises(LoadError, match=f"^{ADD} is built for aarch64, this machine is"):
        load(files)


def test_a_device_program_says_what_it_needs(ready_files: Callable[..., Files]) -> None:
    with pytest.raises(DeviceUnavailable, match=r"execution_mode='device'.*needs an NPU and its driver"):
        load(ready_files("scripted", [], ["mix"], execution_mode="device"))


def test_the_loader_names_the_object_it_refuses(shared_object: Callable[[str], bytes]) -> None:
    broken = bytearray(shared_object("add"))
    broken[0x20:0x28] = (1 << 40).to_bytes(8, "little")  # program headers far behind the end
    with pytest.raises(LoadError, match=r"^kernels/add\.so cannot be loaded: "):
        shared_objects.load(bytes(broken), "kernels/add.so")


def test_headers_of_a_shared_object(shared_object: Callable[[str], bytes]) -> None:
    data = shared_object("add")
    facts = read_shared_object(data)
    assert facts.machine == os.uname().machine
    assert facts.functions >= {"kernel_entry", "pypto_kernel_begin", "pypto_kernel_op", "pypto_kernel_error"}
    assert facts.build_id is not None and len(facts.build_id) == 40
    for length in range(0, len(data), 997):
        with pytest.raises(ValueError):
            read_shared_object(data[:length])


def test_release_unloads(scenario_files: Files) -> None:
    gc.collect()
    before = loaded_objects()
    program = load(scenario_files)
    assert loaded_objects() == before + 5
    run(program)
    program.release()
    gc.collect()
    assert loaded_objects() == before
    with pytest.raises(RuntimeError, match="'scenarios' was released"):
        run(program)


def test_programs_are_collected_with_their_code(scenario_files: Files) -> None:
    gc.collect()
    before = loaded_objects()
    for _ in range(10):
        run(load(scenario_files))
    gc.collect()
    assert loaded_objects() == before


def test_the_same_descriptor_never_means_an_older_object(shared_object: Callable[[str], bytes]) -> None:
    """The dynamic loader goes by path, and descriptors are used again: every object must still be its own."""
    objects = [shared_objects.load(shared_object(name), name) for name in ("add", "copy", "mix", "add")]
    entries = {ctypes.cast(library.kernel_entry, ctypes.c_void_p).value for library in objects}
    assert len(entries) == 4


def test_without_anonymous_files_a_private_file_is_used(
    scenario_files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSYS, "no memfd")

    monkeypatch.setattr(os, "memfd_create", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run(load(scenario_files))
    assert list(tmp_path.iterdir()) == []


def test_sealed_files_cannot_be_written(scenario_files: Files) -> None:
    descriptor = shared_objects.sealed_file(b"abc", "name")
    assert descriptor is not None
    try:
        with pytest.raises(PermissionError):
            os.pwrite(descriptor, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 1)
        assert os.pread(descriptor, 9, 0) == b"abc"
    finally:
        os.close(descriptor)


def test_a_read_only_world_is_enough(scenario_files: Files, tmp_path: Path) -> None:
    """No writable folder, no PATH, no bytecode: loading and running touch no file system."""
    folder = write(scenario_files, tmp_path / "ready")
    code = (
        "import sys, os, numpy as np\n"
        "def audit(event, args):\n"
        "    if event == 'open' and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):\n"
        "        os.write(1, f'wrote {args}'.encode())\n"
        "    if event in ('subprocess.Popen', 'os.fork', 'os.posix_spawn', 'tempfile.mkdtemp', 'os.mkdir'):\n"
        "        os.write(1, event.encode())\n"
        "sys.addaudithook(audit)\n"
        "from pypto.runtime import CompiledProgram\n"
        "x = np.ones((2, 3), np.float32); out = x.copy()\n"
        "CompiledProgram.from_dir(sys.argv[1])(100, x, x.copy(), out, 0)\n"
        "print(out.sum())\n"
    )
    root = Path(__file__).resolve().parents[3]
    environment = {"PYTHONPATH": str(root), "TMPDIR": "/nonexistent", "PATH": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, folder], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("48.0\n", "")
