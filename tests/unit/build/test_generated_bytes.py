"""Generated files of all kernels are equal bytes under every Python of this machine, optimisation and hash seed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
KERNELS = ("add", "decode", "matmul", "rmsnorm", "softmax")

PROGRAM = """
import hashlib, importlib, json, sys
sys.path.insert(0, sys.argv[1])
from pypto.build.generate import generate, request_record
from pypto.build.options import CompileOptions
from pypto.build.specialize import specialize
from pypto.language.signature import Signature
from pypto.language.source import collect
from pathlib import Path
digests = {}
for name in sys.argv[3:]:
    entry = getattr(importlib.import_module(f"kernels.{name}"), name)
    closure = collect(entry)
    specialization = specialize(entry.qualname, Signature.of(entry).params, {}, CompileOptions())
    out = Path(sys.argv[2]) / name
    generate(closure, specialization, out)
    digests[name] = hashlib.sha256(request_record(closure, specialization).to_bytes()).hexdigest()
    for path in sorted(out.rglob("*")):
        if path.is_file():
            digests[f"{name}/{path.relative_to(out)}"] = hashlib.sha256(path.read_bytes()).hexdigest()
print(json.dumps(digests))
"""


def generated(python: str, out: Path, *flags: str, **environment: str) -> dict[str, str]:
    done = subprocess.run(
        [python, "-B", *flags, "-c", PROGRAM, PROJECT, out, *KERNELS],
        env={"PATH": os.environ["PATH"], **environment},
        cwd=out,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    digests: dict[str, str] = json.loads(done.stdout)
    return digests


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return generated(sys.executable, tmp_path_factory.mktemp("expected"), PYTHONHASHSEED="0")


def pythons() -> list[str]:
    """One working interpreter of each supported version."""
    found = {}
    places = [Path(sys.base_prefix).parent.glob("3.1[123]*/bin/python3")]  # where pyenv and uv keep theirs
    candidates = [sys.executable, *(shutil.which(f"python3.{minor}") or "" for minor in (11, 12, 13))]
    candidates += sorted(str(path) for place in places for path in place)
    for candidate in filter(None, candidates):
        version = subprocess.run(
            [candidate, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True
        )
        if version.returncode == 0:
            found.setdefault(version.stdout, candidate)
    return list(found.values())


def test_every_kernel_has_files(expected: dict[str, str]) -> None:
    assert {name.split("/")[0] for name in expected} == set(KERNELS)
    assert expected["add/kernel_config.json"] != expected["softmax/kernel_config.json"]
    assert hashlib.sha256(b"").hexdigest() not in expected.values()


@pytest.mark.parametrize("python", pythons())
def test_equal_bytes(python: str, expected: dict[str, str], tmp_path: Path) -> None:
    for number, (flags, seed) in enumerate((((), "random"), (("-O",), "1"), (("-OO", "-X", "utf8=0"), "0"))):
        out = tmp_path / str(number)
        out.mkdir()
        assert generated(python, out, *flags, PYTHONHASHSEED=seed, LC_ALL="C", TZ="Asia/Tokyo") == expected
