"""Directories that the steps write: names, modes, refusals."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pypto._identity.records import canonical_json
from pypto.build.errors import BuildError
from pypto.build.layout import (
    copy_file,
    generated_files,
    new_directory,
    read_config,
    ready_files,
    write_file,
)
from pypto.build.parallel import run_all

CONFIG = {
    "schema": 1,
    "entry": "decode",
    "orchestration": {"source": "orchestration/decode.cpp", "binary": "prebuilt/orchestration/decode.so"},
    "kernels": [
        {
            "name": "qk",
            "pto": "ptoas/qk.pto",
            "cpp": "ptoas/qk.cpp",
            "source": "kernels/aic/qk.cpp",
            "binary": "prebuilt/kernels/qk.so",
        }
    ],
}


def test_files_of_both_states() -> None:
    generated = ("kernel_config.json", "kernels/aic/qk.cpp", "orchestration/decode.cpp", "ptoas/qk.pto")
    assert generated_files(CONFIG) == generated
    assert ready_files(CONFIG) == tuple(
        sorted(
            (
                *generated,
                "binary_manifest.json",
                "prebuilt/kernels/qk.so",
                "prebuilt/orchestration/decode.so",
                "ptoas/qk.cpp",
            )
        )
    )


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_modes_come_from_the_role_of_a_file(tmp_path: Path, umask: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"binary")
    source.chmod(0o555)
    before = os.umask(umask)
    try:
        out = new_directory(tmp_path / "out")
        write_file(out, "a/b/x.so", b"1")
        copy_file(source, out, "a/c.cpp")
    finally:
        os.umask(before)
    modes = {str(p.relative_to(out)): stat.S_IMODE(p.stat().st_mode) for p in [out, *out.rglob("*")]}
    assert modes == {".": 0o755, "a": 0o755, "a/b": 0o755, "a/b/x.so": 0o755, "a/c.cpp": 0o644}


def test_an_output_directory_is_new_or_empty(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "old").touch()
    (tmp_path / "file").touch()
    with pytest.raises(BuildError, match="is not empty; name a new one"):
        new_directory(tmp_path / "full")
    with pytest.raises(BuildError, match="exists and is not a directory"):
        new_directory(tmp_path / "file")


def test_configuration_is_canonical_and_of_a_known_schema(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"is not a generated directory: it has no kernel_config\.json"):
        read_config(tmp_path)
    path = tmp_path / "kernel_config.json"
    path.write_bytes(canonical_json(CONFIG))
    assert read_config(tmp_path) == CONFIG
    path.write_bytes(canonical_json(CONFIG) + b"\n")
    with pytest.raises(BuildError, match="canonical JSON"):
        read_config(tmp_path)
    path.write_bytes(canonical_json({**CONFIG, "schema": 2}))
    with pytest.raises(BuildError, match="schema that this PyPTO does not read"):
        read_config(tmp_path)


def test_the_first_failing_item_decides_the_error() -> None:
    def work(item: int) -> int:
        if item % 2:
            raise ValueError(item)
        return item * 10

    assert run_all(work, [0, 2, 4], 2) == [0, 20, 40]
    assert run_all(work, [], None) == []
    with pytest.raises(ValueError, match="1"):
        run_all(work, [0, 1, 2, 3], 4)
