"""What the package declares about its targets, and the compiler's list of files against what is covered."""

from __future__ import annotations

from pathlib import Path

import pytest

import pypto.runtime
from pypto.runtime import LoadError
from pypto.runtime.kernel_config import KernelConfig
from pypto.runtime.targets import target
from pypto.runtime.witness import parse_dependencies, uncovered

INCLUDE = Path(pypto.runtime.__file__).parent / "native" / "include" / "pypto"


def test_every_header_is_declared_and_exists() -> None:
    """KC-19, KC-35: for simulator and device together, exactly the headers of the package."""
    declared = {
        path
        for mode in ("sim", "device")
        for sources in (target("Ascend950", mode).kernel_sources(), target("Ascend950", mode).orchestration_sources())
        for path in sources
    }
    assert all(path.is_file() for path in declared)
    assert {path.name for path in declared if path.parent == INCLUDE} == {path.name for path in INCLUDE.iterdir()}


def test_headers_name_no_undeclared_one() -> None:
    """What a header includes of the package is declared for the same use."""
    for sources in (target("Ascend910B", "sim").kernel_sources(), target("Ascend910B", "sim").orchestration_sources()):
        names = {path.name for path in sources}
        for path in sources:
            if path.parent == INCLUDE:
                lines = path.read_text().splitlines()
                included = {line.split('"')[1] for line in lines if line.startswith('#include "pypto/')}
                assert {Path(name).name for name in included} <= names, path.name


@pytest.mark.parametrize(
    ("backend", "simulated", "cube", "vector"),
    [
        ("Ascend910B", "A2A3", "dav-c220-cube", "dav-c220-vec"),
        ("Ascend950", "A5", "dav-c310-cube", "dav-c310-vec"),
    ],
)
def test_architectures(backend: str, simulated: str, cube: str, vector: str) -> None:
    """KC-13."""
    declared = target(backend, "device")
    assert (declared.simulated, declared.aicore["aic"], declared.aicore["aiv"]) == (simulated, cube, vector)


@pytest.mark.parametrize(
    ("mode", "runtime", "compiler"),
    [
        ("sim", "host_build_graph", "host"),
        ("sim", "tensormap_and_ringbuffer", "host"),
        ("device", "host_build_graph", "host"),
        ("device", "tensormap_and_ringbuffer", "aarch64"),
    ],
)
def test_who_compiles_orchestrations(mode: str, runtime: str, compiler: str) -> None:
    """KC-32, KC-33, KC-34."""
    assert target("Ascend910B", mode).orchestration_compiler(runtime) == compiler


def test_unknown_words() -> None:
    with pytest.raises(ValueError, match="Ascend1"):
        target("Ascend1", "sim")
    with pytest.raises(ValueError, match="runtime is 'host_build_graph' or"):
        target("Ascend910B", "sim").orchestration_compiler("other")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("backend_type", "'Ascend1', expected Ascend910B or Ascend950"),
        ("execution_mode", "'Ascend1', expected sim or device"),
        ("runtime", "'Ascend1', expected host_build_graph or tensormap_and_ringbuffer"),
    ],
)
def test_a_configuration_for_an_unknown_target_is_not_loaded(field: str, words: str) -> None:
    record = {
        "schema": 1, "entry": "f", "build_kind": "single_chip", "runtime": "host_build_graph", "runtime_abi": 1,
        "backend_type": "Ascend910B", "execution_mode": "sim", "params": [], "returns": [], "kernels": [],
        "orchestration": {"source": "orchestration/f.cpp", "binary": "prebuilt/orchestration/f.so"},
    }  # fmt: skip
    assert KernelConfig.from_record(record).entry == "f"
    with pytest.raises(LoadError, match=f"the field '{field}' is {words}"):
        KernelConfig.from_record({**record, field: "Ascend1"})


def test_the_syntax_of_make() -> None:
    text = "w/out.so: w/a.cpp \\\n t/gcc/usr/include/x.h \\\n /a\\ b/c\\#d$$e.h w/a.cpp\n"
    assert parse_dependencies(text) == ("w/a.cpp", "t/gcc/usr/include/x.h", "/a b/c#d$e.h")
    assert parse_dependencies("w/out.so: \\\n") == ()


@pytest.mark.parametrize(
    "path",
    [
        "w/a.cpp",
        "w/sub/../a.cpp",
        "t/gcc/usr/include/x.h",
        "t/gcc/usr/lib/../include/x.h",
        "t/isa/include/pto/x.hpp",
        "t/pypto/pypto/runtime/x.h",
    ],
)
def test_covered(path: str) -> None:
    assert uncovered([path], ("gcc", "isa"), ("a.cpp",)) == ()


@pytest.mark.parametrize(
    "path",
    [
        "/usr/include/x.h",
        "w/b.h",
        "w/../b.h",
        "tmp/x.h",
        "t/gcc/../isa/x.h",
        "t/gcc/..",
        "t/cann/x.h",
        "t/pypto/tests/x.h",
        "t/pypto/pypto/../x.h",
        "x.h",
    ],
)
def test_not_covered(path: str) -> None:
    assert uncovered(["w/a.cpp", path], ("gcc", "isa"), ("a.cpp",)) == (path,)
