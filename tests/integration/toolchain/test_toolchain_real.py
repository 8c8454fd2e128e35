"""The real tools: they run in the closed environment, and what they make depends on no place."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pypto.toolchain import Toolchain, ToolError, elf
from pypto.toolchain.descriptor import Bindings
from pypto.toolchain.install import check
from pypto.toolchain.tools import (
    Command,
    PrivateRoot,
    gcc_compile_incore,
    gcc_orchestration,
    private_root,
    ptoas_command,
)

CPP23 = """
#include <cmath>
#include <expected>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <vector>
static std::expected<int, int> half(int x) {
  if consteval { return 0; }
  if (x % 2) return std::unexpected(x);
  return x / 2;
}
extern "C" int answer(int x) {
  int sum = 0;
  std::thread adder([&] { sum = half(x).value_or(-1); });
  adder.join();
  try {
    if (sum < 0) throw std::runtime_error("odd");
  } catch (const std::exception&) { return -7; }
  return sum + static_cast<int>(std::sqrt(16.0 * x));
}
"""

# One tile of 8 rows and 16 columns, copied; the kernel says which instructions it may use by its core type.
COPY = """
using namespace pto;
extern "C" void kernel_entry(int64_t* args) {
  using Where = GlobalTensor<float, Shape<1, 1, 1, 8, 16>, Stride<128, 128, 128, 16, 1>>;
  Where from(reinterpret_cast<float*>(args[0])), to(reinterpret_cast<float*>(args[1]));
  Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, 8, 16> tile;
  TASSIGN(tile, 0);
  TLOAD(tile, from);
  TADD(tile, tile, tile);
  TSTORE(to, tile);
}
"""

PTO = """module {
  func.func @twice(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>) {
    return
  }
}
"""


def build(root: PrivateRoot, command: Command, source: str, output: str, text: str) -> bytes:
    (root.path / source).write_text(text)
    root.run(command, f"build {source}")
    return (root.path / output).read_bytes()


def test_ptoas_starts_in_the_closed_environment(toolchain: Toolchain) -> None:
    """No compiler and no renamed library of the host takes part: the environment names the set's own folders only."""
    with private_root(toolchain) as root:
        command = ptoas_command(toolchain, "w/a.pto", "w/a.cpp")
        assert command.env["PATH"] == "/nonexistent"
        assert "LLVM version 19.1.7" in root.run(Command((command.argv[0], "--version"), command.env), "version")


def test_recorded_build_id_of_ptoas(toolchain: Toolchain) -> None:
    tool = toolchain.descriptor.sets["ptoas"].tools["ptoas"]
    assert tool.build_id == "905bc0c2208c1f5cde4dda215c473115cebbe967"
    data = (toolchain.root("ptoas") / tool.path).read_bytes()
    assert hashlib.sha256(data).hexdigest() == tool.sha256
    assert elf.build_id(data) == tool.build_id


def test_ptoas_error_names_the_line(toolchain: Toolchain) -> None:
    with private_root(toolchain) as root:
        (root.work / "bad.pto").write_text("module { func.func @x() { foo.bar } }\n")
        with pytest.raises(ToolError, match=r"assemble bad: ptoas .*\n.*bad\.pto.*1:27.*foo"):
            root.run(ptoas_command(toolchain, "w/bad.pto", "w/bad.cpp"), "assemble bad")


def test_a_modern_shared_object_is_built_and_loaded(toolchain: Toolchain, tmp_path: Path) -> None:
    with private_root(toolchain) as root:
        data = build(root, gcc_orchestration(toolchain, "w/o.cpp", "w/o.so"), "w/o.cpp", "w/o.so", CPP23)
    (tmp_path / "o.so").write_bytes(data)
    library = ctypes.CDLL(str(tmp_path / "o.so"))
    assert library.answer(4) == 2 + 8
    assert library.answer(5) == -7
    assert elf.build_id(data) is not None


@pytest.mark.parametrize("core", ["aiv", "aic"])
def test_an_incore_kernel_is_built_with_the_isa_headers(toolchain: Toolchain, tmp_path: Path, core: str) -> None:
    with private_root(toolchain) as root:
        command = gcc_compile_incore(toolchain, "w/k.cpp", "w/k.so", core=core)  # type: ignore[arg-type]
        data = build(root, command, "w/k.cpp", "w/k.so", COPY)
    (tmp_path / "k.so").write_bytes(data)
    source = (ctypes.c_float * 128)(*range(128))
    target = (ctypes.c_float * 128)()
    args = (ctypes.c_int64 * 2)(ctypes.addressof(source), ctypes.addressof(target))
    ctypes.CDLL(str(tmp_path / "k.so")).kernel_entry(args)
    assert list(target) == [2.0 * value for value in range(128)]


def test_bfloat16_is_a_real_type(toolchain: Toolchain, tmp_path: Path) -> None:
    text = """
    extern "C" int bits(float x) { bfloat16_t y = x; uint16_t b; __builtin_memcpy(&b, &y, 2); return b; }
    """
    with private_root(toolchain) as root:
        command = gcc_compile_incore(toolchain, "w/k.cpp", "w/k.so", core="aiv", bfloat16=True)
        (tmp_path / "k.so").write_bytes(build(root, command, "w/k.cpp", "w/k.so", text))
    bits = ctypes.CDLL(str(tmp_path / "k.so")).bits
    bits.argtypes = [ctypes.c_float]
    assert [bits(1.0), bits(-2.0), bits(1.00390625), bits(1.01171875)] == [0x3F80, 0xC000, 0x3F80, 0x3F82]


def test_equal_bytes_from_different_places(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another private root, another folder of the tools, other variables in the caller's environment."""
    moved = tmp_path / "a much longer name of a folder"
    moved.mkdir()
    for name, folder in toolchain.bindings.roots.items():
        (moved / name).symlink_to(folder)
    other = Toolchain(toolchain.descriptor, Bindings({name: moved / name for name in toolchain.bindings.roots}))
    made = []
    for at, parent in ((toolchain, None), (other, tmp_path)):
        with private_root(at, parent=parent) as root:
            made.append(
                (
                    build(root, gcc_orchestration(at, "w/o.cpp", "w/o.so"), "w/o.cpp", "w/o.so", CPP23),
                    build(root, gcc_compile_incore(at, "w/k.cpp", "w/k.so", core="aiv"), "w/k.cpp", "w/k.so", COPY),
                )
            )
            assert str(root.path).encode() not in made[-1][0] + made[-1][1]
        for name in ("CPATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH", "LC_ALL"):
            monkeypatch.setenv(name, "/rubbish")
    assert made[0] == made[1]


def test_the_linker_takes_the_c_library_of_the_set(toolchain: Toolchain, tmp_path: Path) -> None:
    """ld's own list of the files that it used names none of the host's."""
    with private_root(toolchain) as root:
        command = gcc_orchestration(toolchain, "w/o.cpp", "w/o.so")
        (root.work / "o.cpp").write_text(CPP23)
        said = root.run(Command((*command.argv, "-Wl,--trace"), command.env), "link")
    used = [line for line in said.splitlines() if ".so" in line or line.endswith((".o", ".a"))]
    assert any(line.endswith("libc.so.6") for line in used)
    assert [line for line in used if not line.startswith(("t/gcc/", "tmp/"))] == []


def test_the_installed_files_are_what_the_descriptor_says(toolchain: Toolchain) -> None:
    assert check(toolchain) == []


def test_nothing_of_pypto_is_needed_but_the_standard_library(toolchain: Toolchain) -> None:
    """As Bazel's repository rule starts it: an isolated interpreter without site packages, no HOME, PATH unusable."""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-S", "-B", "-m", "pypto.toolchain", "show", "--json"],
        env={"PYTHONPATH": str(root), "PATH": "/nonexistent", "XDG_CACHE_HOME": os.path.dirname(cache())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert toolchain.descriptor.digest in done.stdout


def cache() -> str:
    from pypto.toolchain.selection import cache_folder

    return str(cache_folder() / "x")
