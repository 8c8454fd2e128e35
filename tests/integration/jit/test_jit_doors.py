"""One kernel through JIT, the build steps and a sealed bundle: equal bytes, exact hits, clear errors."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

RUN = """\
import numpy as np
x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
out = np.zeros_like(x)
assert scaled(x, FACTOR, out) is out
assert np.array_equal(out, x * np.float32(FACTOR)), out
"""


def test_cfg_02_03_a_first_process_builds(first_process: dict[str, Any]) -> None:
    assert first_process == {"requests": 1, "misses": 1, "generation_builds": 1, "binary_builds": 1}


def test_req_26_jit_20_a_later_process_needs_no_compiler_whatever_the_scalars(
    world: Any, cache: Path, no_tools: Path
) -> None:
    for environment in ({}, {"PYPTO_CACHE_READONLY": "1"}):
        counts = world.counts(
            "FACTOR = -3.5\n" + RUN,
            PYPTO_CACHE="1",
            PYPTO_CACHE_DIR=cache,
            PYPTO_TOOLCHAIN_DESCRIPTOR=no_tools,
            **environment,
        )
        assert counts == {"requests": 1, "ready_hits": 1}


def test_req_28_jit_17_two_cold_processes_build_once(world: Any, tmp_path: Path) -> None:
    code = "kernel = scaled.warmup()\nprint(kernel.program is not None)\n"
    environment = {"PYPTO_CACHE": "1", "PYPTO_CACHE_DIR": str(tmp_path / "cache")}
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: world.process(code, **environment), range(2)))
    assert [process.returncode for process in done] == [0, 0], [process.stderr for process in done]
    outputs = [process.stdout.splitlines() for process in done]
    counts = [json.loads(lines[-1]) for lines in outputs]
    assert sum(count["generation_builds"] for count in counts) == 1
    assert sum(count["binary_builds"] for count in counts) == 1
    for lines, count in zip(outputs, counts, strict=True):
        assert (lines[0] == "True") == (count["generation_builds"] == 1)


def test_a_ready_hit_loads_no_compiler(world: Any, cache: Path) -> None:
    code = """
import sys
scaled.warmup()
loaded = [m for m in sys.modules if m.startswith(("pypto.codegen", "pypto.language.pars", "pypto.ir.passes"))]
assert loaded == [], loaded
assert "pypto.runtime.kernel_compiler" not in sys.modules
"""
    assert world.counts(code, PYPTO_CACHE="1", PYPTO_CACHE_DIR=cache) == {"requests": 1, "ready_hits": 1}


def test_the_steps_and_jit_write_equal_artifacts(bundle: Path, cache: Path, same_files: Any) -> None:
    same_files(bundle / "artifacts", cache / "artifacts")


def test_a_bundle_is_a_ready_hit_without_cache_and_tools(world: Any, bundle: Path, tmp_path: Path) -> None:
    absent = tmp_path / "absent.json"
    environment = {"PYPTO_TOOLCHAIN_DESCRIPTOR": absent, "HOME": tmp_path}
    for use in ("", f"pypto.use_bundles([{str(bundle)!r}])\n"):
        if not use:
            environment["PYPTO_BUNDLE_PATH"] = bundle
        else:
            environment.pop("PYPTO_BUNDLE_PATH")
        counts = world.counts(use + "FACTOR = 0.25\n" + RUN + "scaled(x, FACTOR, out)\n", **environment)
        assert counts == {"requests": 2, "disabled_requests": 2, "ready_hits": 1, "object_hits": 1}
    assert list(tmp_path.iterdir()) == []


def test_another_kernel_than_the_bundles_is_not_a_hit(world: Any, bundle: Path, tmp_path: Path) -> None:
    source = (world.folder / "sample_kernels.py").read_text()
    (tmp_path / "sample_kernels.py").write_text(source.replace(") * factor,", ") * (factor + 1.0),"))
    done = dataclasses.replace(world, folder=tmp_path).process(
        "scaled.warmup()",
        PYPTO_BUNDLE_PATH=bundle,
        PYPTO_TOOLCHAIN_DESCRIPTOR=tmp_path / "absent.json",
    )
    assert done.returncode == 1
    assert "ToolchainNotInstalled" in done.stderr


def test_a_damaged_bundle_is_an_error_that_names_the_file(world: Any, bundle: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.bundle"
    shutil.copytree(bundle, copy)
    (damaged,) = copy.rglob("prebuilt/orchestration/*.so")
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    done = world.process("FACTOR = 1.0\n" + RUN, PYPTO_BUNDLE_PATH=copy)
    assert done.returncode == 1
    assert "BundleDamaged" in done.stderr
    assert str(damaged) in done.stderr


def test_without_tools_the_error_names_the_command(world: Any, tmp_path: Path) -> None:
    done = world.process("FACTOR = 1.0\n" + RUN, PYPTO_TOOLCHAIN_DESCRIPTOR="", HOME=tmp_path)
    assert done.returncode == 1
    assert "ToolchainNotInstalled" in done.stderr
    assert "python -m pypto.toolchain install" in done.stderr
    assert "compiled.py" not in done.stderr and done.stderr.count("  File ") <= 4  # the caller, and the call itself
    assert not (tmp_path / ".cache").exists()


def test_a_wrong_kernel_is_one_error_with_its_place(world: Any) -> None:
    done = world.process("wrong.warmup()")
    assert done.returncode == 1
    assert "sample_kernels.py:21:" in done.stderr
    assert "pl.load(x, [0, 0], [ROWS, 3 * COLUMNS])" in done.stderr
    assert "^^^" in done.stderr


def _other_python() -> str:
    """Another supported CPython of this machine, if there is one; else this one."""
    names = [name for name in ("3.13", "3.12", "3.11") if name != "{}.{}".format(*sys.version_info)]
    candidates = [found for name in names if (found := shutil.which(f"python{name}"))]
    candidates += sorted(
        str(python) for name in names for python in (Path(sys.base_prefix).parent).glob(f"{name}*/bin/python")
    )
    for candidate in candidates:
        # A launcher, such as a shim of pyenv, needs a PATH that the processes of these tests do not have.
        asked = subprocess.run([candidate, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        if asked.returncode == 0:
            return asked.stdout.strip()
    return sys.executable


def test_another_python_an_installed_wheel_and_a_strange_environment_change_no_byte(
    world: Any, cache: Path, same_files: Any, installed: Path, tmp_path: Path
) -> None:
    counts = world.counts(
        f"assert pypto.__file__.startswith({str(installed)!r})\nscaled.warmup()",
        python=(_other_python(), "-O"),
        path=installed,
        umask=0o077,
        PYPTO_CACHE="1",
        PYPTO_CACHE_DIR=tmp_path / "elsewhere",
        LD_LIBRARY_PATH="/nonexistent:.",
        CPATH="/nonexistent",
        GCC_EXEC_PREFIX="/nonexistent/",
        TMPDIR=tmp_path,
        PYTHONHASHSEED="1",
        LC_ALL="C",
        TZ="Asia/Tokyo",
    )
    assert counts == {"requests": 1, "misses": 1, "generation_builds": 1, "binary_builds": 1}
    same_files(cache / "artifacts", tmp_path / "elsewhere" / "artifacts")


@pytest.mark.parametrize("flags", [(), ("-O",)])
def test_a_bundle_of_one_python_is_a_hit_in_another(world: Any, bundle: Path, flags: tuple[str, ...]) -> None:
    counts = world.counts("scaled.warmup()", python=(_other_python(), *flags), PYPTO_BUNDLE_PATH=bundle)
    assert counts == {"requests": 1, "disabled_requests": 1, "ready_hits": 1}
