"""Programs of the host, and small ones made with its GCC."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pypto._identity.host.selection import HostSelection, PtoIsa


@pytest.fixture(scope="session")
def gxx() -> str:
    """The host's g++, which these tests are about."""
    found = shutil.which("g++")
    if found is None:
        if os.environ.get("PYPTO_REQUIRE"):
            pytest.fail("no g++ on PATH (Debian package g++)")
        pytest.skip("no g++ on PATH (Debian package g++)")
    return found


Build = Callable[..., Path]


@pytest.fixture
def build(gxx: str) -> Build:
    """build(path, C source, *flags): a program or, with -shared, a library."""

    def make(path: Path, source: str, *flags: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        subprocess.run(
            [gxx, "-x", "c++", "-", "-o", str(path), *flags], input=source.encode(), check=True, cwd=path.parent
        )
        return path

    return make


@pytest.fixture
def selection(tmp_path: Path, gxx: str, build: Build) -> HostSelection:
    """This host, with a small ptoas of its own and nothing else of this process's environment."""
    build(tmp_path / "bin/ptoas", 'extern "C" int puts(const char*);\nint main() { puts("ptoas 1.2.3"); }\n')
    package = tmp_path / "pypto"
    (package / "runtime").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "runtime/__init__.py").write_text("")
    return HostSelection(
        variables={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
        cwd=str(tmp_path),
        project_root=str(tmp_path),
        package_root=str(package),
        pto_isa=PtoIsa(revision="7" * 40),
    )
