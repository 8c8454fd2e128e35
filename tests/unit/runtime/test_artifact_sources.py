"""Packing hand-written sources: what is found, what is copied where, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pypto._identity.records import canonical_json
from pypto.jit.artifact_cache.spec import BuildKind
from pypto.runtime._artifact_sources import (
    UnsupportedArtifactInput,
    following_links,
    package_extern,
    package_generated_sources,
)


def write(root: Path, **files: str | bytes) -> Path:
    """Files by name, with `__` for `/` and `_` for the dot of `_h` and `_cpp`."""
    for name, content in files.items():
        stem, _, suffix = name.replace("__", "/").rpartition("_")
        path = root / f"{stem}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def packed(source: Path, *include_dirs: Path) -> list[str]:
    return sorted(package_extern(source, include_dirs).files)


def test_ext_01_02_includes_are_followed_and_keep_their_places(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        kernels__a_cpp='#include "one.h"\n',
        kernels__one_h='#include "../common/two.h"\n',
        common__two_h='#include "three.h"\n',
        common__three_h="",
        common__other_h="",
    )
    package = package_extern(root / "kernels/a.cpp", [])
    assert package.source == "kernels/a.cpp"
    assert sorted(package.files) == ["common/three.h", "common/two.h", "kernels/a.cpp", "kernels/one.h"]
    assert package.files["kernels/one.h"] == b'#include "../common/two.h"\n'


def test_ext_03_38_43_the_first_include_folder_wins_and_brackets_look_there_too(tmp_path: Path) -> None:
    root = write(tmp_path, k__a_cpp="#include <x.h>\n#include <vector>\n", one__x_h="1", two__x_h="2", two__unused_h="")
    package = package_extern(root / "k/a.cpp", [root / "two", root / "one"])
    assert package.include_dirs == ("two", "one")
    assert sorted(package.files) == ["k/a.cpp", "two/x.h"]


def test_ext_04_05_links_above_the_common_root(tmp_path: Path) -> None:
    write(tmp_path, real__k__a_cpp='#include "x.h"', real__k__x_h="")
    (tmp_path / "link").symlink_to("real")
    assert packed(tmp_path / "link/k/a.cpp") == ["a.cpp", "x.h"]


@pytest.mark.parametrize("include", ["link.h", "linked/x.h", "linked/../x.h"])
def test_ext_06_07_links_below_the_common_root(tmp_path: Path, include: str) -> None:
    write(tmp_path, k__a_cpp=f'#include "{include}"', k__x_h="", far__deep__x_h="", far__x_h="")
    (tmp_path / "k/link.h").symlink_to("x.h")
    (tmp_path / "k/linked").symlink_to("../far/deep")
    with pytest.raises(UnsupportedArtifactInput, match="goes through the link"):
        package_extern(tmp_path / "k/a.cpp", [])
    with following_links():
        assert packed(tmp_path / "k/a.cpp")


LIVE = '#include "live.h"\n'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('// #include "no.h"\n', False),
        ('/* \n#include "no.h"\n*/\n', False),
        ('// continued \\\n#include "no.h"\n', False),
        ('#inc\\\nlude "live.h"\n', True),
        ('  #  include /* so */ "live.h" // this\n', True),
        ('#include /* over\nlines */ "live.h"\n', True),
        ('%:include "live.h"\n', True),
        ('#include "live.h"\r\n', True),
        ('const char* s = "/*";\n' + LIVE, True),
        ("int n = 1'000; // it's\n" + LIVE, True),
        ('auto r = R"(\n#if 0\n)";\n' + LIVE, True),
        ('auto r = R"x(\n#include "no.h"\n)x";\n', False),
        ('#if 0\n#include "no.h"\n#endif\n', False),
        ('#if 0 // never\n#include "no.h"\n#else\n' + LIVE + "#endif\n", True),
        ("#if 1\n" + LIVE + '#else\n#include "no.h"\n#endif\n', True),
        ('#if 1\n#elif X\n#include "no.h"\n#endif\n', False),
        ("#if 0\n#elif 1\n" + LIVE + '#else\n#include "no.h"\n#endif\n', True),
        ('#if 0\n#if 1\n#include "no.h"\n#endif\n#include "no.h"\n#endif\n', False),
        ('#if 0\n#ifdef X\n#else\n#include "no.h"\n#endif\n#endif\n', False),
        ("#if X\n#else\n" + LIVE + "#endif\n", True),
        ("#if (0)\n" + LIVE + "#endif\n", True),
        ("#if 0x0\n" + LIVE + "#endif\n", True),
        ("#ifdef X\n" + LIVE + "#endif\n", True),
        ('#if X\n#elif 0\n#include "no.h"\n#elif Y\n' + LIVE + "#endif\n", True),
    ],
)
def test_ext_08_to_13_39_40_what_may_take_effect(tmp_path: Path, text: str, found: bool) -> None:
    write(tmp_path, a_cpp=text, live_h="")
    assert packed(tmp_path / "a.cpp") == (["a.cpp", "live.h"] if found else ["a.cpp"])


def test_ext_13_both_branches_of_an_unknown_condition(tmp_path: Path) -> None:
    write(tmp_path, a_cpp='#ifdef X\n#include "x.h"\n#else\n#include "y.h"\n#endif\n', x_h="", y_h="")
    assert packed(tmp_path / "a.cpp") == ["a.cpp", "x.h", "y.h"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n#include HEADER\n", r"a.cpp:2: the file of #include HEADER is decided by a macro"),
        ('#include "/etc/x.h"\n', r"a.cpp:1: #include \"/etc/x.h\" is an absolute path"),
        ("#include </etc/x.h>\n", "is an absolute path"),
        ('#if X\n#include "none.h"\n#endif\n', r"a.cpp:2: #include \"none.h\" is not in any of"),
        ('#include_next "x.h"\n', "#include_next cannot be followed"),
        ("#import <x.h>\n", "#import cannot be followed"),
        ("#embed <x.bin>\n", "#embed cannot be followed"),
        ('asm(".incbin \\"x\\"");\n', "assembler directives"),
        ('#define A asm(".include \\"x\\"")\n', "assembler directives"),
    ],
)
def test_ext_14_to_16_26_37_refusals(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, a_cpp=text)
    with pytest.raises(UnsupportedArtifactInput, match=message):
        package_extern(tmp_path / "a.cpp", [])


def test_ext_17_18_bytes_stay_bytes(tmp_path: Path) -> None:
    source = b'// caf\xe9\n#include "x.h"\n\x00'
    write(tmp_path, a_cpp=source, x_h=b"\xff")
    assert package_extern(tmp_path / "a.cpp", []).files == {"a.cpp": source, "x.h": b"\xff"}


def test_ext_41_cycles(tmp_path: Path) -> None:
    write(tmp_path, a_cpp='#include "x.h"', x_h='#include "y.h"', y_h='#include "x.h"')
    assert packed(tmp_path / "a.cpp") == ["a.cpp", "x.h", "y.h"]


def test_ext_24_25_30_31_other_errors_are_other_types(tmp_path: Path) -> None:
    assert UnsupportedArtifactInput is not ValueError
    assert issubclass(UnsupportedArtifactInput, ValueError)
    with pytest.raises(FileNotFoundError):
        package_extern(tmp_path / "none.cpp", [])


def generated(folder: Path, **kernel: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config = {"build_kind": "single_chip", "kernels": [{"name": "add", "core": "aiv", **kernel}]}
    (folder / "kernel_config.json").write_bytes(canonical_json(config))
    return folder


@pytest.mark.parametrize("kind", ["single_chip", BuildKind.SINGLE_CHIP])
def test_rt_07_08_09_ext_20_22_28_42_a_directory_that_needs_nothing_outside(tmp_path: Path, kind: Any) -> None:
    source = write(tmp_path / "src", k__a_cpp="#include <x.h>", inc__x_h="")
    (source / "empty").mkdir()
    extern = {"include_dirs": [str(source / "inc"), str(source / "empty")], "files": []}
    directory = generated(tmp_path / "gen", source=str(source / "k/a.cpp"), extern=extern)
    package_generated_sources(directory, kind)
    first = (directory / "kernel_config.json").read_bytes()
    (kernel,) = json.loads(first)["kernels"]
    assert kernel["source"] == "extern/add/k/a.cpp"
    assert kernel["extern"] == {
        "include_dirs": ["extern/add/inc", "extern/add/empty"],
        "files": ["extern/add/inc/x.h", "extern/add/k/a.cpp"],
    }
    assert str(tmp_path) not in first.decode()
    assert (directory / "extern/add/k/a.cpp").read_text() == "#include <x.h>"
    assert (source / "k/a.cpp").read_text() == "#include <x.h>"
    package_generated_sources(directory, kind)
    assert (directory / "kernel_config.json").read_bytes() == first


def test_ext_22_no_include_folders(tmp_path: Path) -> None:
    write(tmp_path, a_cpp="")
    extern = {"include_dirs": None, "files": []}
    directory = generated(tmp_path / "gen", source=str(tmp_path / "a.cpp"), extern=extern)
    package_generated_sources(directory, "single_chip")
    (kernel,) = json.loads((directory / "kernel_config.json").read_bytes())["kernels"]
    assert kernel["extern"]["include_dirs"] == []


def test_ext_29_a_refused_directory_is_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, a_cpp="#include X")
    extern = {"include_dirs": [], "files": []}
    directory = generated(tmp_path / "gen", source=str(tmp_path / "a.cpp"), extern=extern)
    before = (directory / "kernel_config.json").read_bytes()
    with pytest.raises(UnsupportedArtifactInput):
        package_generated_sources(directory, "single_chip")
    assert [p.name for p in directory.iterdir()] == ["kernel_config.json"]
    assert (directory / "kernel_config.json").read_bytes() == before


def test_ext_32_33_a_damaged_configuration_is_no_packing_limit(tmp_path: Path) -> None:
    directory = generated(tmp_path / "gen")
    for kind in ("distributed", "other"):
        with pytest.raises(ValueError) as wrong:
            package_generated_sources(directory, kind)
        assert not isinstance(wrong.value, UnsupportedArtifactInput)
    (directory / "kernel_config.json").write_text("{")
    with pytest.raises(ValueError, match="not valid JSON") as damaged:
        package_generated_sources(directory, "single_chip")
    assert not isinstance(damaged.value, UnsupportedArtifactInput)


def test_ext_19_21_headers_of_the_sdk_and_empty_folders(tmp_path: Path) -> None:
    write(tmp_path, k__a_cpp="#include <pto/pto-inst.hpp>\n#include <vector>\n")
    (tmp_path / "empty").mkdir()
    package = package_extern(tmp_path / "k/a.cpp", [tmp_path / "empty", tmp_path / "absent"])
    assert list(package.files) == ["k/a.cpp"]
    assert package.include_dirs == ("empty", "absent")
