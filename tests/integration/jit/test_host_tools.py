"""Requests of processes that chose the tools of this machine: keys, bypasses with their reasons, private results."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pypto._identity.host.identity import host_inputs
from pypto._identity.host.selection import HostSelection, PtoIsa
from pypto._identity.policy import IdentitySettings
from pypto.toolchain import Toolchain

RUN = """\
import numpy as np
x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
out = np.zeros_like(x)
assert scaled(x, 2.0, out) is out
assert np.array_equal(out, x * np.float32(2.0)), out
"""
LOOK = "scaled.compile()\n"
MISS = {"requests": 1, "misses": 1, "generation_builds": 1}
BYPASS = {"requests": 1, "bypasses": 1, "generation_builds": 1}

Counts = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def host(world: Any, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The world of the kernels, in which processes take this machine's g++ and the installed ptoas and PTO-ISA."""
    if shutil.which("g++") is None:
        if os.environ.get("PYPTO_REQUIRE"):
            pytest.fail("no g++ on PATH (Debian package g++)")
        pytest.skip("no g++ on PATH (Debian package g++)")
    folder = tmp_path_factory.mktemp("host")
    (folder / "sample_kernels.py").write_text((world.folder / "sample_kernels.py").read_text())
    environment = {
        "PATH": os.environ["PATH"],
        "PYPTO_TOOLCHAIN": "host",
        "PTOAS_ROOT": str(toolchain.root("ptoas")),
        "PTO_ISA_ROOT": str(toolchain.root("isa")),
        "PYPTO_CACHE": "1",
        "PYPTO_CACHE_DIR": "cache",
    }
    return replace(world, folder=folder, environment=environment)


@pytest.fixture(scope="module")
def filled(host: Any) -> dict[str, Any]:
    """The counters of the process that fills the cache."""
    counts: dict[str, Any] = host.counts(RUN)
    return counts


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def in_front(folder: Path) -> str:
    """A PATH on which the programs in `folder` come first."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_idb_02_a_later_process_with_the_same_tools_hits(host: Any, filled: dict[str, Any]) -> None:
    assert filled == {**MISS, "binary_builds": 1}
    assert host.counts(RUN) == {"requests": 1, "ready_hits": 1}


def test_idb_01_02_24_another_compiler_misses(host: Any, filled: dict[str, Any], tmp_path: Path) -> None:
    # The copied driver finds its helper programs no more, so it is told where they are.
    real = shutil.which("g++")
    assert real is not None
    cc1plus = subprocess.run([real, "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True).stdout
    shutil.copy(os.path.realpath(real), tmp_path / "g++")
    helpers = {"COMPILER_PATH": os.path.dirname(cc1plus.strip())}
    for variables in (helpers, {"PATH": in_front(tmp_path), **helpers}):
        assert host.counts(LOOK, **variables) == MISS
        assert host.counts(LOOK, **variables) == {"requests": 1, "generated_hits": 1}


def test_a_wrapper_of_one_exec_line_is_its_own_key_and_builds(host: Any, tmp_path: Path) -> None:
    """A recognised wrapper: cached under a key of its own, which holds the wrapper's bytes."""
    script(tmp_path / "g++", f'#!/bin/sh\nexec {shutil.which("g++")} "$@"\n')
    options = {"PATH": in_front(tmp_path), "PYPTO_CACHE_DIR": str(tmp_path / "cache")}
    assert host.counts(RUN, **options) == {**MISS, "binary_builds": 1}
    assert host.counts(RUN, **options) == {"requests": 1, "ready_hits": 1}
    script(tmp_path / "g++", f'#!/bin/sh\n# changed\nexec {shutil.which("g++")} "$@"\n')
    assert host.counts(LOOK, **options) == MISS


def test_idb_06_14_104_an_unknown_wrapper_builds_privately(host: Any, tmp_path: Path) -> None:
    script(tmp_path / "g++", f'#!/bin/sh\necho . >> {tmp_path}/ran\nexec {shutil.which("g++")} "$@"\n')
    options = {"PATH": in_front(tmp_path), "PYPTO_CACHE_DIR": str(tmp_path / "cache")}
    counts = host.counts(RUN, **options)
    reason = counts.pop("last_bypass_reason")
    assert counts == {**BYPASS, "binary_builds": 1}
    assert f"the compiler wrapper {tmp_path}/g++ is not recognised" in reason
    assert (tmp_path / "ran").exists()
    assert not (tmp_path / "cache").exists()


def no_isa(tmp_path: Path) -> dict[str, str]:
    return {"PTO_ISA_ROOT": ""}


def shell_ptoas(tmp_path: Path) -> dict[str, str]:
    script(tmp_path / "ptoas", "#!/bin/sh\nexec ptoas-real\n")
    return {"PATH": in_front(tmp_path), "PTOAS_ROOT": ""}


def no_ptoas(tmp_path: Path) -> dict[str, str]:
    return {"PTOAS_ROOT": str(tmp_path)}


def script_helper(tmp_path: Path) -> dict[str, str]:
    script(tmp_path / "as", '#!/bin/sh\nexec /usr/bin/as "$@"\n')
    return {"COMPILER_PATH": str(tmp_path)}


def set_cpath(tmp_path: Path) -> dict[str, str]:
    return {"CPATH": str(tmp_path)}


def relative_libraries(tmp_path: Path) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": "lib"}


def set_preload(tmp_path: Path) -> dict[str, str]:
    return {"LD_PRELOAD": "libm.so.6"}


def set_library_path(tmp_path: Path) -> dict[str, str]:
    return {"LIBRARY_PATH": str(tmp_path)}


@pytest.mark.parametrize(
    ("policy", "change", "said"),
    [
        ("build", no_isa, "PTO-ISA has neither a pinned revision nor a folder"),
        ("build", shell_ptoas, "is not supported: no ELF file and no wheel's console script"),
        ("build", no_ptoas, "PTOAS_ROOT has neither bin/ptoas nor ptoas"),
        ("build", script_helper, "the GCC helper program"),
        ("content", shell_ptoas, "is not supported: no ELF file and no wheel's console script"),
        ("content", set_cpath, "CPATH is set, whose effect the content policy cannot list"),
        ("content", set_preload, "LD_PRELOAD is set"),
        ("content", set_library_path, "LIBRARY_PATH is set"),
        ("content", relative_libraries, "LD_LIBRARY_PATH has a relative or an empty entry"),
    ],
)
def test_idb_14_idc_16_every_bypass_leaves_its_reason(
    host: Any, tmp_path: Path, policy: str, change: Callable[[Path], dict[str, str]], said: str
) -> None:
    root = str(tmp_path / "cache")
    counts = host.counts(LOOK, PYPTO_CACHE_IDENTITY=policy, PYPTO_CACHE_DIR=root, **change(tmp_path))
    reason = counts.pop("last_bypass_reason")
    assert counts == BYPASS
    assert said in reason
    assert not os.path.exists(root)


def test_ins_21_cnt_36_a_fingerprint_does_not_stand_in_for_tools(host: Any, tmp_path: Path) -> None:
    config = "from pypto.jit.config import CacheConfig, configure_cache\n"
    config += "configure_cache(CacheConfig(enabled=True, extra_fingerprint='all is well'))\n"
    counts = host.counts(config + LOOK, PTO_ISA_ROOT="", PYPTO_CACHE_DIR=tmp_path / "cache")
    assert "PTO-ISA has neither" in counts.pop("last_bypass_reason")
    assert counts == BYPASS
    assert not (tmp_path / "cache").exists()


def test_idb_17_extra_sources_are_read_by_every_request(host: Any, tmp_path: Path) -> None:
    source = tmp_path / "helper.py"
    source.write_text("A = 1\n")
    code = f"""
from pathlib import Path
from pypto.jit.config import CacheConfig, configure_cache
configure_cache(CacheConfig(enabled=True, extra_source_paths=[{str(source)!r}]))
one = scaled.compile()
assert scaled.compile() is one
Path({str(source)!r}).write_text("A = 2\\n")
other = scaled.compile()
assert other is not one and other.key != one.key
"""
    counts = host.counts(code, PYPTO_CACHE_DIR=tmp_path / "cache")
    assert counts == {"requests": 3, "object_hits": 1, "misses": 2, "generation_builds": 2}


def wheel(folder: Path) -> Path:
    """An installation of a ptoas wheel in an environment of its own, which a start-up hook runs code in."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "hook.pth").write_text("import sys; sys.hooked = True\n")
    package, info = site / "ptoas", site / "ptoas-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('the compiler package was imported')\n")
    shutil.copy("/proc/self/exe", package / "native.so")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ptoas\nVersion: 1.0\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\n")
    (info / "entry_points.txt").write_text("[console_scripts]\nptoas = ptoas:main\n")
    (info / "RECORD").write_text("ptoas/__init__.py,,\nptoas/native.so,,\n")
    text = (
        f"#!{folder}/bin/python\nimport sys\nfrom ptoas import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    )
    return script(folder / "bin/ptoas", text)


def test_idb_92_93_94_a_start_up_hook_disables_nothing(host: Any, tmp_path: Path) -> None:
    launcher = wheel(tmp_path / "env")
    options = {"PTOAS_ROOT": "", "PATH": in_front(launcher.parent), "PYPTO_CACHE_DIR": str(tmp_path / "cache")}
    assert host.counts("one = scaled.compile()\nassert scaled.compile() is one\n", **options) == {
        "requests": 2,
        "object_hits": 1,
        "misses": 1,
        "generation_builds": 1,
    }
    assert host.counts(LOOK, **options) == {"requests": 1, "generated_hits": 1}


@pytest.mark.parametrize("cache", ["1", "0"])
def test_idb_60_the_abi_of_the_runtime_is_checked_whatever_answers(
    host: Any, filled: dict[str, Any], cache: str
) -> None:
    """An object of another ABI is refused when it is loaded, after a hit and without the cache."""
    done = host.process("from pypto.runtime import abi\nabi.RUNTIME_ABI = 2\n" + RUN, PYPTO_CACHE=cache)
    assert done.returncode == 1
    assert "the orchestration speaks runtime ABI 1, this PyPTO speaks 2" in done.stderr.splitlines()[-1]


def test_ins_19_35_one_resolution_serves_identity_and_compiler(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pypto.toolchain import tools
    from pypto.toolchain.host import HostTools

    real = shutil.which("g++")
    if real is None:
        pytest.skip("no g++ on PATH (Debian package g++)")
    found = HostTools(
        HostSelection(
            variables={"PATH": os.environ["PATH"], "PTOAS_ROOT": str(toolchain.root("ptoas"))},
            cwd=str(tmp_path),
            project_root=str(tmp_path),
            pto_isa=PtoIsa(root=str(toolchain.root("isa"))),
        )
    )

    def entries() -> tuple[str, str]:
        inputs = host_inputs(found.selection, IdentitySettings())
        assert inputs.device_toolchain.unavailable_reason is None
        identified = inputs.device_toolchain.evidence["compilers"]["host"]["entry"]["path"]
        return identified, tools.gcc_orchestration(found, "w/a.cpp", "w/a.so").argv[0]

    assert entries() == (real, real)
    wrapper = script(tmp_path / "elsewhere/g++", f'#!/bin/sh\nexec {real} "$@"\n')
    monkeypatch.setattr(HostSelection, "compilers", lambda _: {"host": str(wrapper)})
    assert entries() == (str(wrapper), str(wrapper))
    monkeypatch.setattr(HostSelection, "ptoas", lambda _: (real, None))
    inputs = host_inputs(found.selection, IdentitySettings())
    assert inputs.ptoas.evidence["path"] == os.path.realpath(real)
    assert tools.ptoas_command(found, "w/a.pto", "w/a.cpp").argv[0] == real


def test_idc_01_content_lists_all_files_and_caches(host: Any, toolchain: Toolchain, tmp_path: Path) -> None:
    """The inventory: programs with their libraries, headers and link inputs of the system, the library of Python."""
    options = {"PYPTO_CACHE_IDENTITY": "content", "PYPTO_CACHE_DIR": str(tmp_path / "cache")}
    assert host.counts(LOOK, **options) == MISS
    assert host.counts(LOOK, **options) == {"requests": 1, "generated_hits": 1}
    selection = HostSelection(
        variables={name: host.environment[name] for name in ("PATH", "PTOAS_ROOT")},
        cwd=str(tmp_path),
        project_root=str(tmp_path),
        pto_isa=PtoIsa(root=str(toolchain.root("isa"))),
    )
    inputs = host_inputs(selection, IdentitySettings("content"))
    gxx = shutil.which("g++")
    assert gxx is not None

    def asked(*arguments: str) -> str:
        done = subprocess.run([gxx, *arguments], capture_output=True, text=True, check=True)
        return os.path.realpath(done.stdout.strip())

    listed = [os.fspath(root.path) for root in inputs.device_toolchain.roots]
    wanted = [os.path.realpath(gxx), *(asked(f"-print-prog-name={name}") for name in ("cc1plus", "collect2"))]
    wanted += [asked(f"-print-file-name={name}") for name in ("libstdc++.so", "libc.so.6", "include", "crtbeginS.o")]
    wanted += ["/usr/include"]
    missing = [path for path in wanted if not any(path == root or path.startswith(f"{root}/") for root in listed)]
    assert missing == []
    assert inputs.device_toolchain.reported_version is None


def test_headers_that_variables_bring_in_are_not_covered(host: Any, tmp_path: Path) -> None:
    """A compiler that reads a file which no identity covers gives a result that is not shared, and says why."""
    (tmp_path / "cstdint").write_text("#pragma once\n#include_next <cstdint>\n")
    root = tmp_path / "cache"
    counts = host.counts(RUN, CPATH=str(tmp_path), PYPTO_CACHE_DIR=root)
    reason = counts.pop("last_bypass_reason")
    assert counts == {**MISS, "binary_builds": 1, "bypasses": 1}
    assert f"{tmp_path}/cstdint" in reason
    assert list(root.rglob("*.so")) == []


def test_missing_tools_are_one_error_each(host: Any, tmp_path: Path) -> None:
    for change, said in (
        ({"PTO_ISA_ROOT": ""}, "PTO_ISA_ROOT is not set"),
        ({"PTO_ISA_ROOT": str(tmp_path)}, "PTO_ISA_ROOT names no PTO-ISA"),
        ({"PTOAS_ROOT": str(tmp_path)}, "name its installation with PTOAS_ROOT"),
    ):
        done = host.process("scaled.warmup()\n", PYPTO_CACHE="0", **change)
        assert done.returncode == 1
        assert said in done.stderr.splitlines()[-1]


def test_idb_16_headers_of_pto_isa_count_by_content(host: Any, toolchain: Toolchain, tmp_path: Path) -> None:
    shutil.copytree(toolchain.root("isa"), tmp_path / "isa")
    options = {"PTO_ISA_ROOT": str(tmp_path / "isa"), "PYPTO_CACHE_DIR": str(tmp_path / "cache")}
    assert host.counts(LOOK, **options) == MISS
    assert host.counts(LOOK, **options) == {"requests": 1, "generated_hits": 1}
    with (tmp_path / "isa/include/pto/pto-inst.hpp").open("a") as header:
        header.write("// changed\n")
    assert host.counts(LOOK, **options) == MISS


def test_the_worlds_share_nothing(host: Any, descriptor: Path, tmp_path: Path) -> None:
    hermetic = {"PYPTO_TOOLCHAIN": "", "PYPTO_TOOLCHAIN_DESCRIPTOR": str(descriptor)}
    for world in ({}, hermetic):
        assert host.counts(LOOK, PYPTO_CACHE_DIR=tmp_path / "cache", **world) == MISS
        assert host.counts(LOOK, PYPTO_CACHE_DIR=tmp_path / "cache", **world) == {"requests": 1, "generated_hits": 1}
