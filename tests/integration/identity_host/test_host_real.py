"""The host identity with the real GCC and loader of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pypto._identity import IdentitySettings, InstallationIdentityCache, digest_record
from pypto._identity.host.closure import closure
from pypto._identity.host.files import Unidentified
from pypto._identity.host.identity import HostIdentities, component_inputs, host_identity, host_inputs
from pypto._identity.host.probes import ProcessProbes
from pypto._identity.host.selection import HostSelection, capture_selection

Build = Callable[..., Path]

BUILD = IdentitySettings()
CONTENT = IdentitySettings("content")
STRICT = IdentitySettings(strict=True)
PROGRAMS = ("cc1plus", "collect2", "lto-wrapper")
WRAPPER = "#include <unistd.h>\nint main(int, char** v) { RENAME execv(GXX, v); }\n"


def recorded(
    selection: HostSelection, name: str, settings: IdentitySettings
) -> tuple[dict[str, Any] | None, str | None]:
    """The record of one component or the reason why there is none, as a new process would see it."""
    probes = ProcessProbes({**selection.tool_variables(), "LC_ALL": "C"}, selection.project_root)
    return component_inputs(name, selection, settings, probes).record(name, {"world": "host", **settings.record()})


def component(selection: HostSelection, name: str, settings: IdentitySettings = BUILD) -> str:
    """The digest of one component."""
    record, reason = recorded(selection, name, settings)
    assert record is not None, reason
    return digest_record(record)


def reason(selection: HostSelection, name: str, settings: IdentitySettings = BUILD) -> str | None:
    """Why a component has no identity."""
    return recorded(selection, name, settings)[1]


def test_this_host(selection: HostSelection, gxx: str) -> None:
    """IDB-97 to IDB-101: what the tools say about themselves and what `readelf` reads in them is what is recorded."""
    record = host_inputs(selection).device_toolchain.evidence["compilers"]["host"]
    assert record["entry"]["path"] == gxx
    assert record["driver"]["path"] == os.path.realpath(gxx)
    version = subprocess.run([gxx, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    assert f"gcc version {version}" in record["version"]
    machine = subprocess.run([gxx, "-dumpmachine"], capture_output=True, text=True, check=True).stdout.strip()
    assert record["target"] == machine
    assert record["helpers"].keys() == {"as", "cc1plus", "collect2", "ld"}
    for program in (record["entry"], record["driver"], *record["helpers"].values()):
        notes = subprocess.run(["readelf", "-n", program["path"]], capture_output=True, text=True, check=True).stdout
        match = re.search(r"Build ID: ([0-9a-f]+)", notes)
        assert program["native"]["build_id"] == (match[1] if match else None)
    assert host_identity(selection).usable
    assert host_identity(selection) is host_identity(replace(selection))


def test_nothing_is_scanned_under_build(selection: HostSelection, tmp_path: Path) -> None:
    """IDB-11 to IDB-13: no system header and no file of the standard library is opened to identify the tools."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed (Debian package strace)")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pypto._identity.host.identity import host_inputs\n"
        "from pypto._identity.host.selection import PtoIsa, capture_selection\n"
        "selection = capture_selection(package_root=sys.argv[2], pto_isa=PtoIsa(revision='7' * 40))\n"
        "open('/dev/null').close()\n"
        "assert not [i for _, i in host_inputs(selection).items() if i.unavailable_reason]\n"
    )
    log = tmp_path / "log"
    subprocess.run(
        [strace, "-f", "-o", log, "-e", "trace=open,openat", sys.executable, "-c", program,
         str(Path(__file__).parents[3]), str(selection.package_root)],
        env={"PATH": selection.variables["PATH"]}, cwd="/", check=True,
    )  # fmt: skip
    opened = re.findall(r'"([^"]+)", O_RDONLY[^)]*\) = \d+', log.read_text().partition('"/dev/null"')[2])
    assert any(path.endswith("cc1plus") for path in opened)
    assert not [path for path in opened if "/include/" in path]
    sources = {path for path in opened if path.startswith(os.path.dirname(os.__file__)) and path.endswith(".py")}
    # Modules that are imported late are loaded, compiled or not; nothing goes through the library.
    assert len(sources) < 30


@pytest.fixture
def private_gcc(tmp_path: Path, gxx: str, selection: HostSelection) -> tuple[HostSelection, Path]:
    """A copy of the host's GCC that finds its own files beside it, so that they can be changed."""
    usr = tmp_path / "gcc/usr"
    driver = os.path.realpath(gxx)
    cc1plus = subprocess.run([gxx, "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True).stdout
    libexec = os.path.dirname(os.path.realpath(cc1plus.strip()))
    where = subprocess.run([gxx, "-print-file-name=include"], capture_output=True, text=True, check=True).stdout
    resources = os.path.dirname(os.path.realpath(where.strip()))
    if not (driver.startswith("/usr/bin/") and resources.startswith("/usr/lib/gcc/") and libexec.startswith("/usr/")):
        pytest.skip("this host's GCC is not laid out as a distribution's")
    (usr / "bin").mkdir(parents=True)
    shutil.copy2(driver, usr / "bin/g++")
    for folder in {libexec, resources}:
        target = usr / os.path.relpath(folder, "/usr")
        target.mkdir(parents=True, exist_ok=True)
        for name in os.listdir(folder):
            source = os.path.join(folder, name)
            if name in ("include", "include-fixed"):
                shutil.copytree(source, target / name)
            elif os.path.isfile(source) and (name in PROGRAMS or name.endswith((".o", ".so", ".a"))):
                shutil.copy2(source, target / name)
    headers = tmp_path / "gcc/usr/include/c++" / os.path.basename(resources)
    headers.mkdir(parents=True)
    (headers / "vector").write_text("// stand-in\n")
    choice = replace(selection, variables={**selection.variables, "PATH": f"{usr}/bin:{selection.variables['PATH']}"})
    return choice, usr / os.path.relpath(resources, "/usr")


def test_content_sees_every_byte_of_a_compiler(private_gcc: tuple[HostSelection, Path]) -> None:
    """IDC-02 to IDC-05, INS-14, INS-16 to INS-18: programs, resources, implicit includes, link inputs."""
    selection, resources = private_gcc
    usr = resources.parents[3]
    inputs = host_inputs(selection, CONTENT).device_toolchain
    assert inputs.unavailable_reason is None, inputs.unavailable_reason
    roots = {root.path for root in inputs.roots}
    assert str(usr / "bin/g++") in roots
    assert any(path.endswith("/libc.so.6") for path in roots)
    assert any("/libstdc++.so" in path for path in roots)
    assert any(path.endswith("crti.o") for path in roots)
    assert any(path == "/usr/include" or path.startswith("/usr/include/") for path in roots)
    seen = [component(selection, "device_toolchain", CONTENT)]
    weak = component(selection, "device_toolchain")
    helper = next(usr.rglob("cc1plus"))
    for path in (
        resources / "include/stddef.h",
        resources / "crtbeginS.o",
        usr / "include/c++" / resources.name / "vector",
        helper,
        usr / "bin/g++",
    ):
        with open(path, "ab") as file:
            file.write(b"\n")
        seen.append(component(selection, "device_toolchain", CONTENT))
    assert len(set(seen)) == len(seen)
    assert component(selection, "device_toolchain") == weak, "under `build` the Build-IDs speak, and did not change"
    for path in (helper, resources / "crtbeginS.o"):
        os.utime(path, (1, 1))
    assert component(selection, "device_toolchain", CONTENT) == seen[-1]


def test_strict_sees_them_too(private_gcc: tuple[HostSelection, Path]) -> None:
    selection, resources = private_gcc
    before = component(selection, "device_toolchain", STRICT)
    (resources / "include/stddef.h").write_text("")
    assert component(selection, "device_toolchain", STRICT) != before


@pytest.fixture
def linked(tmp_path: Path, selection: HostSelection, build: Build) -> HostSelection:
    """A ptoas that reports no version and needs liba, which needs libb."""
    lib = tmp_path / "lib"
    build(lib / "libb.so", "int b() { return 1; }", "-shared", "-fPIC", "-Wl,--build-id=0x01")
    build(lib / "liba.so", "int b(); int a() { return b(); }", "-shared", "-fPIC", "-L.", "-lb", "-Wl,-rpath,$ORIGIN")
    build(tmp_path / "bin/ptoas", "int a(); int main() { return a(); }", f"-L{lib}", "-la", f"-Wl,-rpath,{lib}",
          f"-Wl,-rpath-link,{lib}")  # fmt: skip
    return selection


def test_closure_of_libraries(linked: HostSelection, tmp_path: Path, build: Build) -> None:
    """IDC-02, INS-15, IDB-13: a library that a library needs; under `build` it plays no part."""
    files = {root.path for root in host_inputs(linked, CONTENT).ptoas.roots}
    assert {str(tmp_path / "lib/liba.so"), str(tmp_path / "lib/libb.so"), str(tmp_path / "bin/ptoas")} <= files
    assert any(path.endswith("libc.so.6") for path in files)
    assert any("ld-linux" in path for path in files)
    before, weak, strict = (component(linked, "ptoas", settings) for settings in (CONTENT, BUILD, STRICT))
    build(tmp_path / "lib/libb.so", "int b() { return 2; }", "-shared", "-fPIC", "-Wl,--build-id=0x01")
    assert component(linked, "ptoas", CONTENT) != before
    assert component(linked, "ptoas", STRICT) != strict
    assert component(linked, "ptoas") == weak
    (tmp_path / "lib/libb.so").unlink()
    assert reason(linked, "ptoas", CONTENT) == f"{tmp_path}/bin/ptoas needs libb.so, which is not found"


def test_library_path_decides_the_closure(linked: HostSelection, tmp_path: Path, build: Build) -> None:
    """IDC-02: as the loader would find it."""
    build(tmp_path / "other/libb.so", "int b() { return 3; }", "-shared", "-fPIC")
    choice = replace(linked, variables={**linked.variables, "LD_LIBRARY_PATH": str(tmp_path / "other")})
    files = {root.path for root in host_inputs(choice, CONTENT).ptoas.roots}
    # A RUNPATH comes after LD_LIBRARY_PATH.
    assert str(tmp_path / "other/libb.so") in files
    assert str(tmp_path / "lib/libb.so") not in files


def test_closure_of_a_static_program(tmp_path: Path, build: Build) -> None:
    path = build(tmp_path / "static", "int main() {}", "-static")
    assert closure([str(path)], ProcessProbes({}, "/")) == [str(path)]


def test_closure_of_what_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x7fELF")
    (tmp_path / "y").write_bytes(b"text")
    for name in ("x", "y"):
        with pytest.raises(Unidentified, match=str(tmp_path / name)):
            closure([str(tmp_path / name)], ProcessProbes({}, "/"))


def test_reported_version(selection: HostSelection, tmp_path: Path, build: Build) -> None:
    """REP-09, REP-15, IDC-08 with programs that run; one that hangs is stopped and read instead."""
    inputs = host_inputs(selection, CONTENT).ptoas
    assert (inputs.reported_version, inputs.roots) == ("ptoas 1.2.3\n", ())
    build(tmp_path / "bin/ptoas", 'extern "C" int pause();\nint main() { pause(); }\n')
    variables = {**selection.variables, "LC_ALL": "C"}
    probes = ProcessProbes(variables, str(tmp_path), limit=0.5)
    inputs = host_inputs(replace(selection, compiler="no-such-compiler"), CONTENT, probes=probes).ptoas
    assert inputs.reported_version is None
    assert str(tmp_path / "bin/ptoas") in {root.path for root in inputs.roots}


class TestWrappers:
    @pytest.fixture
    def entry(self, tmp_path: Path) -> Path:
        return tmp_path / "bin/g++"

    def test_exec_script(self, selection: HostSelection, entry: Path, gxx: str) -> None:
        """IDB-100: the script and the driver behind it."""
        entry.write_text(f'#!/bin/sh\nexec {gxx} "$@"\n')
        entry.chmod(0o755)
        record = host_inputs(selection).device_toolchain.evidence["compilers"]["host"]
        assert record["driver"]["path"] == os.path.realpath(gxx)
        assert record["wrapper"]["kind"] == "exec"
        assert component(selection, "device_toolchain", CONTENT)

    def test_native_wrapper(self, selection: HostSelection, entry: Path, gxx: str, build: Build) -> None:
        """IDB-104: an ELF program that runs another one."""
        rename = f'char n[] = "{gxx}"; v[0] = n;'
        build(entry, WRAPPER.replace("RENAME", rename).replace("GXX", f'"{gxx}"'))
        assert reason(selection, "device_toolchain") == (
            f"the compiler wrapper {entry} is not recognised: it runs {os.path.realpath(gxx)}"
        )

    def test_native_wrapper_under_its_own_name(
        self, selection: HostSelection, entry: Path, gxx: str, build: Build
    ) -> None:
        """IDB-104: GCC then looks for its programs beside the wrapper, and finds none."""
        build(entry, WRAPPER.replace("RENAME", "").replace("GXX", f'"{gxx}"'))
        assert "helper program" in (reason(selection, "device_toolchain") or "")


def test_a_stand_in_toolkit_that_runs(selection: HostSelection, tmp_path: Path, build: Build) -> None:
    """IDB-102, REP-18, IDC-09 with native programs: CANN by its build, the host's libraries by content."""
    root = tmp_path / "cann"
    build(root / "bin/ccec", 'extern "C" int puts(const char*);\nint main() { puts("stand-in ccec 1"); }\n')
    build(root / "bin/ld.lld", "int main() {}", "-Wl,--build-id=none")
    (root / "x86_64-linux").mkdir()
    info = root / "x86_64-linux/ascend_toolkit_install.info"
    info.write_text("innerversion=V1\n")
    choice = replace(
        selection, execution_mode="device", variables={**selection.variables, "ASCEND_HOME_PATH": str(root)}
    )
    cann = host_inputs(choice).device_toolchain.evidence["cann"]
    assert cann["compiler_version"] == "stand-in ccec 1\n"
    assert cann["linker"]["native"]["build_id"] is None
    assert len(cann["linker"]["native"]["sha256"]) == 64
    inputs = host_inputs(choice, CONTENT).device_toolchain
    assert inputs.reported_version == "innerversion=V1"
    files = {root.path for root in inputs.roots}
    assert not [path for path in files if path.startswith(str(root))]
    assert any(path.endswith(("/libc.so.6", "libc-2.31.so")) for path in files)
    before = component(choice, "device_toolchain", STRICT)
    (root / "lib.bin").write_text("more")
    assert component(choice, "device_toolchain", STRICT) != before


def test_one_process_changes_its_directory_and_path(
    selection: HostSelection, tmp_path: Path, gxx: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IDB-19 to IDB-23 by the process's own state: rediscovered, and equal where the same tools are found."""
    identities = HostIdentities()
    monkeypatch.setenv("PATH", selection.variables["PATH"])

    def now() -> str:
        choice = capture_selection(package_root=selection.package_root, pto_isa=selection.pto_isa)
        identity = identities.identity(choice)
        assert identity.digest is not None, identity.explain()
        return identity.digest

    before = now()
    monkeypatch.chdir("/")
    assert now() == before
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/opt")
    assert now() == before
    (tmp_path / "front").mkdir()
    (tmp_path / "front/g++").symlink_to(gxx)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"front:{os.environ['PATH']}")
    assert now() != before
    monkeypatch.chdir("/")
    assert now() == before, "a relative entry of PATH names nothing here"


def test_two_policies_never_meet(selection: HostSelection) -> None:
    """IDC-17, INS-29, LIM-02."""
    digests = set()
    for settings in (BUILD, CONTENT, STRICT, IdentitySettings(epoch="2")):
        inputs = host_inputs(
            replace(selection, pto_isa=replace(selection.pto_isa, root=selection.package_root)), settings
        )
        identity = InstallationIdentityCache().capture(inputs)
        assert identity.usable, identity.explain()
        digests |= set(identity.components.values())
    assert len(digests) == 20
