"""Kernels in C++: what the decorator takes, what enters the digest, and requests that cannot be packed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pypto
import pypto.language as pl
from pypto._identity.source import source_digest
from pypto.build.generate import generate
from pypto.ir.nodes import CoreType
from pypto.jit.config import CacheConfig
from pypto.jit.extern_places import errors_at_sources
from pypto.language.errors import CompileError, OutsideKernelError
from pypto.language.source import collect
from pypto.runtime.compiled import Origin
from pypto.runtime.config import RunConfig
from pypto.runtime.kernel_compiler import CompilerOutputError
from pypto.toolchain import ToolTimeout

KERNELS = """
import pypto.language as pl

@pl.jit.extern(core_type="aiv", source="add.cpp", include_dirs=["inc"])
def add(x: pl.Tensor[[16, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    '''Adds n.'''
    ...

@pl.jit.extern(core_type="mixed", aic_source="add.cpp", aiv_source="more.cpp")
def both(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    ...

@pl.jit.extern(core_type="aiv", source="add.cpp")
def bodied(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    return out

@pl.jit
def entry(x: pl.Tensor[[16, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    add(x, n, out)
    return out

@pl.jit
def mixed(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    both(x, out)
    return out

@pl.jit.extern(core_type="mixed", aic_source="add.cpp", aiv_source="more.cpp", dual_aiv_dispatch=True)
def twice(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    ...

@pl.jit
def dual(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    twice(x, out)
    return out

@pl.jit
def chained(x: pl.Tensor[[16, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    middle = pl.create_tensor([16, 64], dtype=pl.FP32)
    once = add(x, n, middle)
    out = add(once, n, out)
    return out

@pl.jit
def plain(x: pl.Tensor[[16, 64], pl.FP32], n: int, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    middle = pl.create_tensor([16, 64], dtype=pl.FP32)
    add(x, n, middle)
    add(middle, n, out)
    return out

@pl.jit
def wrong(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    bodied(x, out)
    return out
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[ModuleType]:
    folder = tmp_path / "sources"
    (folder / "inc").mkdir(parents=True)
    (folder / "add.cpp").write_text("#include <step.h>\n")
    (folder / "more.cpp").write_text("")
    (folder / "inc/step.h").write_text("")
    (folder / "extern_kernels.py").write_text(KERNELS)
    spec = importlib.util.spec_from_file_location("extern_kernels", folder / "extern_kernels.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    yield loaded
    del sys.modules[spec.name]


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    return RunConfig(cache_config=CacheConfig(enabled=True, root=tmp_path / "cache"))


@pytest.fixture
def real_generation(builds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generation stage of the product in place of the stand-in."""

    def counted(closure: Any, specialization: Any, out: Path, observe: Any = None) -> Any:
        builds.generated.append(specialization.entry)
        program = generate(closure, specialization, out, observe)
        builds.while_generating()
        return program

    monkeypatch.setattr(pypto.jit.building, "generate", counted)


def test_a_mixed_kernel_is_one_task_on_each_core(module: ModuleType) -> None:
    functions = module.mixed.lower().incore_functions()
    assert [(f.name, f.core.value, Path(f.extern.source).name) for f in functions] == [
        ("both_aic", "aic", "add.cpp"),
        ("both_aiv", "aiv", "more.cpp"),
    ]


def test_a_call_of_a_stub_gives_what_it_writes(module: ModuleType) -> None:
    texts = {str(kernel.lower()).replace(kernel.qualname, "kernel") for kernel in (module.chained, module.plain)}
    assert len(texts) == 1


def test_a_stub_has_no_body_and_is_not_called(module: ModuleType) -> None:
    with pytest.raises(CompileError, match=r"bodied stands for hand-written C\+\+, so its body must be `...`"):
        module.wrong.lower()
    with pytest.raises(OutsideKernelError, match="add is a device kernel"):
        module.add(1, 2, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"core_type": "cube", "source": "a.cpp"}, "core_type is 'aic', 'aiv' or 'mixed'"),
        ({"core_type": "aiv"}, r"takes source=$"),
        ({"core_type": "aiv", "aiv_source": "a.cpp"}, r"takes source=$"),
        ({"core_type": "mixed", "aic_source": "a.cpp"}, r"takes source= or aic_source= and aiv_source=$"),
        ({"core_type": "mixed", "source": "a", "aic_source": "a", "aiv_source": "b"}, "takes source="),
        ({"core_type": "aiv", "source": "a.cpp", "include_dirs": "inc"}, "include_dirs is a list of folders"),
        ({"core_type": "aic", "source": "a.cpp", "dual_aiv_dispatch": True}, "dual_aiv_dispatch is for vector code"),
        ({"core_type": "aiv", "source": "a.cpp", "dual_aiv_dispatch": "no"}, "is True or False, got 'no'"),
        ({"core_type": "aiv", "source": 3}, "extern: source takes paths, got 3"),
        ({"core_type": "aiv", "source": "a.cpp", "include_dirs": [b"inc"]}, "include_dirs takes paths, got b'inc'"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        pl.jit.extern(**options)


def test_two_vector_cores_for_one_call(module: ModuleType) -> None:
    lowered = module.dual.lower()
    assert [(f.name, f.core, f.extern.lane, f.extern.lanes) for f in lowered.incore_functions()] == [
        ("twice_aic", CoreType.AIC, 0, 1),
        ("twice_aiv_0", CoreType.AIV, 0, 2),
        ("twice_aiv_1", CoreType.AIV, 1, 2),
    ]
    digests = {source_digest(collect(entry).record()) for entry in (module.dual, module.mixed)}
    assert len(digests) == 2
    with pytest.raises(CompileError, match="twice_aiv_0: dual_aiv_dispatch is not supported on devices"):
        module.dual.compile(config=RunConfig(execution_mode="device"))


def test_errors_of_compilers_name_the_files_of_the_user(
    module: ModuleType, builds: Any, real_generation: None, tmp_path: Path
) -> None:
    made = module.entry.compile()
    sources = tmp_path / "sources"
    assert made.output_dir is not None and (made.output_dir / "extern/add/add.cpp").is_file()
    lines = [
        "w/extern/add/add.cpp:1:5: error: a",
        "In file included from w/extern/add/inc/step.h:3:",
        "w/other.cpp:1: b",
    ]
    failed = ToolTimeout("compile add", ["g++"], None, "did not finish", lines, "\n".join(lines))
    with pytest.raises(ToolTimeout) as caught, errors_at_sources(made.output_dir, collect(module.entry)):
        raise failed
    expected = [
        f"{sources}/add.cpp:1:5: error: a",
        f"In file included from {sources}/inc/step.h:3:",
        "w/other.cpp:1: b",
    ]
    assert list(caught.value.lines) == expected
    assert (caught.value.stage, caught.value.argv, caught.value.returncode) == ("compile add", ("g++",), None)
    assert str(caught.value).startswith("compile add: g++ did not finish\n  " + expected[0])
    damaged = CompilerOutputError("w/extern/add/add.cpp is none")
    with (
        pytest.raises(CompilerOutputError, match=f"^{sources}/add.cpp is none$"),
        errors_at_sources(made.output_dir, collect(module.entry)),
    ):
        raise damaged


def test_rt_10_req_20_ext_36_a_packed_kernel_needs_its_sources_no_more(
    module: ModuleType, builds: Any, real_generation: None, config: RunConfig, tmp_path: Path
) -> None:
    made = module.entry.compile(config=config)
    (packed,) = (tmp_path / "cache").rglob("generated/extern/add/add.cpp")
    assert packed.read_text() == "#include <step.h>\n"
    (tmp_path / "sources/add.cpp").unlink()
    made.ensure_ready()
    assert (made.state, made.origin) == ("READY", Origin.SHARED)


def test_ext_23_a_changed_header_is_another_kernel(
    module: ModuleType, builds: Any, real_generation: None, config: RunConfig, tmp_path: Path
) -> None:
    first = module.entry.compile(config=config)
    (tmp_path / "sources/inc/step.h").write_text("int a;")
    second = module.entry.compile(config=config)
    (tmp_path / "sources/inc/step.h").write_text("")
    assert first.key != second.key
    assert module.entry.compile(config=config) is first
    assert builds.generated == ["entry", "entry"]


def test_a_missing_source_is_an_error_with_its_place(module: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "sources/add.cpp").unlink()
    with pytest.raises(CompileError, match=r"add: the source .*add.cpp cannot be read: No such file"):
        module.entry.compile()


def test_req_35_sta_23_33_ext_27_what_cannot_be_packed_stays_private(
    module: ModuleType, builds: Any, real_generation: None, config: RunConfig, tmp_path: Path
) -> None:
    (tmp_path / "sources/add.cpp").write_text("#include STEP\n")
    before = pypto.cache_stats()
    made = module.entry.warmup(config=config)
    after = pypto.cache_stats()
    assert (made.state, made.origin) == ("READY", Origin.PRIVATE)
    assert made.program is not None
    assert (after.misses - before.misses, after.bypasses - before.bypasses) == (1, 1)
    reason = after.last_bypass_reason or ""
    assert reason.startswith("hand-written sources cannot be packed")
    assert reason.endswith("add.cpp:1: the file of #include STEP is decided by a macro")
    assert not list((tmp_path / "cache").rglob("artifact_manifest.json"))
    assert module.entry.compile(config=config) is not made
    uncached = module.entry.compile()
    assert module.entry.compile() is not uncached


def test_req_21_rt_04_12_ext_23_a_source_that_changes_while_it_is_packed(
    module: ModuleType, builds: Any, real_generation: None, config: RunConfig, tmp_path: Path
) -> None:
    builds.while_generating = lambda: (tmp_path / "sources/inc/step.h").write_text("int b;")
    made = module.entry.compile(config=config)
    assert made.origin is Origin.PRIVATE
    assert pypto.cache_stats().last_bypass_reason == "sources changed while the kernel was being built"
