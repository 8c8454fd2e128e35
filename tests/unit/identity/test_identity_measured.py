"""What each policy of the hermetic world sees of the tools, and what not: the cases of docs/guide/identity.md."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pypto._identity import IdentitySettings, hermetic_identity
from pypto._identity.explain import IdentityParts, explain
from pypto._identity.records import canonical_json
from pypto.toolchain import Toolchain, ToolchainDescriptor, ToolchainError, describe, measured, tree
from pypto.toolchain.cli import main
from pypto.toolchain.descriptor import ROOTS, SET_FILE, Bindings, ToolSet
from pypto.toolchain.tools import gcc_orchestration, ptoas_command
from pypto.toolchain.tree import Tree, content_digest, measure

ROOT = Path(__file__).parents[3]
BUILD, CONTENT, STRICT = IdentitySettings(), IdentitySettings("content"), IdentitySettings(strict=True)
POLICIES = {"build": BUILD, "content": CONTENT, "strict": STRICT}

FILES = {
    "bin/tool": (b"a program", True),
    "lib/libtool.so": (b"a library", False),
    "lib/empty": (b"", False),
    "include/deep/er/header.h": (b"#define X 1\n", False),
}


def unpack(folder: Path, version: str = "1") -> Toolchain:
    """Three small sets, recorded as an installer does it."""
    for name in ROOTS:
        root = folder / name
        root.mkdir(parents=True)
        made = Tree(root)
        for path, (data, executable) in FILES.items():
            made.add(path, data + name.encode() if data else data, executable)
        record = ToolSet(
            name, version, "0" * 64, made.digest, made.files, made.size, {"tool": made.tool("bin/tool")}, ("include",)
        )
        (root / SET_FILE).write_bytes(canonical_json(record.record()))
    toolchain = describe({name: folder / name for name in ROOTS})
    (folder / "bindings.json").write_bytes(toolchain.bindings.to_bytes(folder))
    (folder / "descriptor.json").write_bytes(toolchain.descriptor.to_bytes())
    return toolchain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    unpack(tmp_path / "tools")
    return tmp_path / "tools"


@pytest.fixture(autouse=True)
def no_memory() -> Iterator[None]:
    measured._digests.clear()
    yield
    measured._digests.clear()


def key(folder: Path, settings: IdentitySettings) -> str:
    """The environment's digest as a new process sees it."""
    measured._digests.clear()
    return remembered(folder, settings)


def remembered(folder: Path, settings: IdentitySettings) -> str:
    """The environment's digest as this process sees it."""
    toolchain = Toolchain.load(folder / "descriptor.json")
    descriptor = toolchain.descriptor
    if settings.reads_content:
        descriptor = measured.measured(toolchain, device=False, strict=settings.strict)
    digest = hermetic_identity(descriptor.record(), settings=settings).digest
    assert digest is not None
    return digest


def keys(folder: Path) -> dict[str, str]:
    return {name: key(folder, settings) for name, settings in POLICIES.items()}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def every_file(folder: Path) -> list[Path]:
    return sorted(path for name in ROOTS for path in (folder / name).rglob("*") if path.is_file())


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("settings", [CONTENT, STRICT], ids=["content", "strict"])
def test_every_byte_of_every_file_is_seen(folder: Path, settings: IdentitySettings) -> None:
    """KEY-12: with size and times as before; and the key is the old one when the byte is."""
    expected = key(folder, settings)
    seen = {expected}
    for path in every_file(folder):
        if path.name == SET_FILE:
            continue
        for at in range(path.stat().st_size):
            flip(path, at)
            seen.add(key(folder, settings))
            flip(path, at)
    total = sum(path.stat().st_size for path in every_file(folder) if path.name != SET_FILE)
    assert len(seen) == total + 1
    assert key(folder, settings) == expected


def patch(path: str) -> Callable[[Path], object]:
    return lambda folder: flip(folder / path, 0)


CASES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "a program patched in place": (patch("gcc/bin/tool"), {"content", "strict"}),
    "a library patched in place": (patch("ptoas/lib/libtool.so"), {"content", "strict"}),
    "a header patched in place": (patch("isa/include/deep/er/header.h"), {"content", "strict"}),
    "a file added": (lambda f: (f / "isa/include/more.h").write_text(""), {"content", "strict"}),
    "a file removed": (lambda f: (f / "isa/lib/empty").unlink(), {"content", "strict"}),
    "a file renamed": (lambda f: (f / "gcc/lib/empty").rename(f / "gcc/lib/other"), {"content", "strict"}),
    "a folder replaced behind the descriptor": (
        lambda f: (shutil.rmtree(f / "ptoas"), shutil.copytree(f / "isa", f / "ptoas")),
        {"content", "strict"},
    ),
    "an executable bit": (lambda f: (f / "gcc/bin/tool").chmod(0o644), set()),
    "times": (lambda f: os.utime(f / "gcc/bin/tool", (1, 1)), set()),
    "an empty folder": (lambda f: (f / "gcc/more").mkdir(), set()),
    "the record beside the files": (lambda f: (f / "gcc" / SET_FILE).write_text("{}"), set()),
    "a file outside of the sets": (lambda f: (f / "note").write_text("x"), set()),
}


@pytest.mark.parametrize("case", CASES)
def test_what_each_policy_sees(folder: Path, case: str) -> None:
    before = keys(folder)
    CASES[case][0](folder)
    assert changed(before, keys(folder)) == CASES[case][1]


def test_installing_another_version_is_seen_by_all(folder: Path, tmp_path: Path) -> None:
    before = keys(folder)
    unpack(tmp_path / "other", version="2")
    assert changed(before, keys(tmp_path / "other")) == {"build", "content", "strict"}


def test_a_tool_replaced_while_the_process_lives(folder: Path) -> None:
    """MEM-01, MEM-06, LIM-07, CNT-32: this process keeps what it read, a new one sees the change."""
    before = key(folder, CONTENT)
    flip(folder / "gcc/bin/tool", 0)
    assert remembered(folder, CONTENT) == before
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pypto.toolchain import Toolchain;"
        "from pypto.toolchain.measured import measured; t = Toolchain.load(sys.argv[2]);"
        "print(measured(t).digest)"
    )

    def fresh() -> str:
        argv = [sys.executable, "-c", program, str(ROOT), str(folder / "descriptor.json")]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    after = fresh()
    flip(folder / "gcc/bin/tool", 0)
    assert fresh() != after


def test_another_selection_is_read_anew(folder: Path, tmp_path: Path) -> None:
    """MEM-02, MEM-04: the memory is of one folder with one record."""
    unpack(tmp_path / "other")
    flip(tmp_path / "other/gcc/bin/tool", 0)
    assert remembered(folder, CONTENT) != remembered(tmp_path / "other", CONTENT)


def test_threads_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MEM-03."""
    read: list[Path] = []
    real = measured.content_digest
    monkeypatch.setattr(measured, "content_digest", lambda root: read.append(root) or real(root))
    toolchain = Toolchain.load(folder / "descriptor.json")
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.append(measured.measured(toolchain).digest)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1
    assert len(made) == 8
    assert len(read) == 3


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def server(path: Path) -> None:
    path.unlink()
    os.symlink("/", path)  # a socket's name is short, its folder need not be
    path.unlink()
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


@pytest.mark.parametrize("change", [fifo, server, dangling, lambda p: (p.unlink(), p.symlink_to(".."))])
def test_what_cannot_be_read_is_an_error_and_tried_again(folder: Path, change: Callable[[Path], object]) -> None:
    """CNT-22 to CNT-28, MEM-05: never an empty file, never left out."""
    path = folder / "isa/lib/empty"
    expected = key(folder, CONTENT)
    change(path)
    for _ in range(2):
        with pytest.raises(ToolchainError, match="isa"):
            key(folder, CONTENT)
    path.unlink()
    path.write_bytes(b"")
    assert remembered(folder, CONTENT) == expected


def test_a_file_that_changes_while_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CNT-26."""
    path = folder / "isa/bin/tool"
    real = tree.hashlib.file_digest

    def grow(file: object, name: str) -> object:
        digest = real(file, name)  # type: ignore[arg-type]
        with open(path, "ab") as more:
            more.write(b"x")
        return digest

    monkeypatch.setattr(tree.hashlib, "file_digest", grow)
    with pytest.raises(ToolchainError, match="changed while it was being read"):
        content_digest(folder / "isa")


def test_links_of_a_sandbox_are_the_files_themselves(folder: Path, tmp_path: Path) -> None:
    """A sandbox shows every file as a link, a remote machine marks every file as executable."""
    for path in every_file(folder):
        link = tmp_path / "sandbox" / path.relative_to(folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
        remote = tmp_path / "remote" / path.relative_to(folder)
        remote.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, remote)
        remote.chmod(0o555)
    for name in ROOTS:
        assert content_digest(tmp_path / "sandbox" / name) == content_digest(folder / name)
        assert content_digest(tmp_path / "remote" / name) == content_digest(folder / name)
        assert measure(tmp_path / "sandbox" / name) == measure(folder / name)


def test_bazels_descriptor_is_that_of_a_call(folder: Path, tmp_path: Path) -> None:
    """`describe` with the settings of the flags, and a call with those of the variables, make one identity."""
    folders = [part for name in ROOTS for part in (f"--{name}", str(folder / name))]
    for settings, flags in (
        (BUILD, []),
        (CONTENT, ["--cache-identity", "content"]),
        (STRICT, ["--cache-strict", "1"]),
        (IdentitySettings("content", True), ["--cache-identity", "content", "--cache-strict", "1"]),
    ):
        out = tmp_path / "descriptor.json"
        assert main(["describe", *folders, "--out", str(out), *flags]) == 0
        described = ToolchainDescriptor.from_bytes(out.read_bytes())
        assert hermetic_identity(described.record(), settings=settings).digest == key(folder, settings)


def test_the_changed_set_is_named(folder: Path) -> None:
    def parts() -> IdentityParts:
        measured._digests.clear()
        toolchain = Toolchain.load(folder / "descriptor.json")
        identity = hermetic_identity(measured.measured(toolchain).record(), settings=CONTENT)
        return IdentityParts.of(identity, "0" * 64, "1" * 64)

    before = parts()
    flip(folder / "isa/include/deep/er/header.h", 3)
    assert [d.name for d in explain(before, parts())] == ["pto_isa.isa.facts.measured"]


def test_cann_is_known_by_its_build_until_strictness_asks_for_more(folder: Path, tmp_path: Path) -> None:
    """IDC-09, and the project's own setting: of CANN, `content` reads the programs that builds start."""
    cann = tmp_path / "cann"
    for path in ("bin/ccec", "bin/ld.lld", "lib/resource.o"):
        (cann / path).parent.mkdir(parents=True, exist_ok=True)
        (cann / path).write_bytes(b"first")
    (cann / "x86_64-linux").mkdir()
    (cann / "x86_64-linux/ascend_toolkit_install.info").write_text("version=8.0\ninnerversion=V1\n")
    sets = describe({**{name: folder / name for name in ROOTS}, "cann": cann})

    def digests() -> dict[str, str]:
        measured._digests.clear()
        found = {}
        for name, settings in POLICIES.items():
            descriptor = measured.measured(sets, strict=settings.strict) if settings.reads_content else sets.descriptor
            identity = hermetic_identity(descriptor.record(), device=True, settings=settings)
            found[name] = str(identity.digest)
        return found

    before = digests()
    (cann / "lib/resource.o").write_bytes(b"firsT")
    resource = digests()
    assert changed(before, resource) == {"strict"}
    (cann / "bin/ccec").write_bytes(b"firsT")
    assert changed(resource, digests()) == {"content", "strict"}


@pytest.mark.parametrize("name", ["ptoas", "gcc"])
def test_the_tool_that_is_identified_is_the_one_that_runs(folder: Path, name: str) -> None:
    """INS-19, INS-20, INS-35, IDB-37: command and identity come from one record."""
    toolchain = Toolchain.load(folder / "descriptor.json")
    record = toolchain.descriptor.record()
    wanted = "ptoas" if name == "ptoas" else "g++"

    def chosen(path: str) -> tuple[str, str | None]:
        tools = {tool: {**record["sets"][name]["tools"]["tool"], "path": path} for tool in (wanted, "as")}
        sets = {**record["sets"], name: {**record["sets"][name], "tools": tools}}
        descriptor = ToolchainDescriptor.from_bytes(canonical_json({**record, "sets": sets}))
        made = Toolchain(descriptor, toolchain.bindings)
        command = ptoas_command(made, "a", "b") if name == "ptoas" else gcc_orchestration(made, "a", "b")
        return command.argv[0], hermetic_identity(descriptor.record()).digest

    (one, before), (other, after) = chosen("bin/tool"), chosen("bin/other")
    assert (one, other) == (f"t/{name}/bin/tool", f"t/{name}/bin/other")
    assert before != after


def test_folders_do_not_count(folder: Path, tmp_path: Path) -> None:
    """Where the sets lie is in the bindings, which enter no identity."""
    before = keys(folder)
    shutil.copytree(folder, tmp_path / "moved")
    assert keys(tmp_path / "moved") == before
    roots = {name: folder / name for name in ROOTS}
    apart = tmp_path / "apart"
    apart.mkdir()
    shutil.copyfile(folder / "descriptor.json", apart / "descriptor.json")
    (apart / "bindings.json").write_bytes(Bindings(roots).to_bytes(apart))
    assert keys(apart) == before


def test_the_guide_names_tests_that_exist() -> None:
    """Every case of the guide that a policy cannot see is shown by the test that it names."""
    guide = (ROOT / "docs/guide/identity.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(?:(\w+)::)?(test_\w+)`", guide)
    assert len(named) > 10
    for file, group, test in named:
        text = (ROOT / file).read_text()
        assert re.search(rf"^ *def {test}\(", text, re.MULTILINE), f"{file}::{test}"
        assert not group or f"class {group}" in text, f"{file}::{group}"
