"""The package's own content: equal wherever it stands."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

import pytest

from pypto._identity.package import (
    PACKAGE_FILES,
    component_of,
    default_package_root,
    package_files,
    package_fingerprints,
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as in a checkout, BUILD files and caches included; a copy, so that nobody edits it meanwhile."""
    project = tmp_path_factory.mktemp("checkout")
    shutil.copytree(default_package_root(), project / "pypto")
    shutil.copyfile(default_package_root().parent / "pyproject.toml", project / "pyproject.toml")
    return project / "pypto"


def digests(root: Path) -> dict[str, str]:
    found = package_fingerprints(root)
    assert all(fingerprint.reason is None for fingerprint in found.values())
    return {name: str(fingerprint.digest) for name, fingerprint in found.items()}


def copy(package: Path, target: Path) -> Path:
    for _, relative in package_files(package):
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package / relative, target / relative)
    return target


def test_checkout_copy_and_tree_of_links_are_equal(package: Path, tmp_path: Path) -> None:
    """As a wheel (fresh files), as runfiles (links to files), as an editable install (a link to the folder)."""
    expected = digests(package)
    assert digests(copy(package, tmp_path / "wheel/pypto")) == expected
    for _, relative in package_files(package):
        link = tmp_path / "runfiles/pypto" / relative
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(package / relative)
    assert digests(tmp_path / "runfiles/pypto") == expected
    (tmp_path / "editable").symlink_to(package)
    assert digests(tmp_path / "editable") == expected
    for folder, _, names in os.walk(tmp_path / "wheel/pypto"):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o555)
    shutil.copytree(tmp_path / "wheel/pypto", tmp_path / "again")
    assert digests(tmp_path / "again") == expected


@pytest.mark.parametrize(
    "name",
    ["BUILD.bazel", "BUILD", "runtime/BUILD.bazel", "__pycache__/x.cpython-311.pyc", "a/__pycache__/x.py", ".mypy.py",
     "README.md", ".cache/x.py", "notes.json", "runtime/native/README.md", "jit/x.pyc"],
)  # fmt: skip
def test_what_does_not_count(package: Path, tmp_path: Path, name: str) -> None:
    root = copy(package, tmp_path / "pypto")
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("x")
    assert digests(root) == digests(package)
    assert component_of(name) is None


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("new.py", "pypto"), ("ir/deep/new.py", "pypto"), ("toolchain/new.json", "pypto"),
        ("toolchain/compat/include/new.hpp", "pypto"), ("runtime/new.py", "runtime"),
        ("runtime/native/include/pypto/new.h", "runtime"), ("runtime/native/new.hpp", "runtime"),
    ],
)  # fmt: skip
def test_a_new_file_changes_its_component_alone(package: Path, tmp_path: Path, name: str, component: str) -> None:
    root = copy(package, tmp_path / "pypto")
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("x")
    before, after = digests(package), digests(root)
    assert {part for part in before if before[part] != after[part]} == {component}


def test_one_byte_and_one_name_count(package: Path, tmp_path: Path) -> None:
    root = copy(package, tmp_path / "one")
    with (root / "__init__.py").open("ab") as file:
        file.write(b"\n")
    renamed = copy(package, tmp_path / "two")
    (renamed / "ir/nodes.py").rename(renamed / "ir/nodes2.py")
    assert len({digests(package)["pypto"], digests(root)["pypto"], digests(renamed)["pypto"]}) == 3


def test_nothing_that_the_package_needs_is_left_out(package: Path) -> None:
    """A new kind of resource must get a pattern, or be named here as something that never acts on a build."""
    uncounted = {
        relative
        for folder, folders, names in os.walk(package)
        for relative in (os.path.relpath(os.path.join(folder, name), package) for name in names)
        if component_of(relative) is None
        # What pages for people are made of, and what type checkers read.
        and not relative.startswith("runtime/diagnostics/assets/")
        and not relative.endswith(".pyi")
        and "__pycache__" not in relative
        and not any(part.startswith(".") for part in relative.split("/"))
    }
    assert {name for name in uncounted if os.path.basename(name) not in ("BUILD.bazel", "README.md")} == set()


def test_wheel_and_bazel_carry_every_file_that_counts(package: Path) -> None:
    """Else a wheel or a Bazel action would have another identity than the checkout."""
    project = tomllib.loads((package.parent / "pyproject.toml").read_text())
    shipped = {
        path.relative_to(package).as_posix()
        for pattern in project["tool"]["setuptools"]["package-data"]["pypto"]
        for path in package.glob(pattern)
    }
    counted = {relative for _, relative in package_files(package)}
    assert {relative for relative in counted if not relative.endswith(".py")} <= shipped
    folders = {os.path.dirname(relative) for relative in counted if relative.endswith(".py")}
    assert {folder for folder in folders if not (package / folder / "__init__.py").is_file()} == set()
    library = (package / "BUILD.bazel").read_text()
    for _, pattern in PACKAGE_FILES:
        # A glob over all Python files takes those of the runtime in.
        assert f'"{pattern}"' in library or pattern.endswith("/**/*.py"), pattern


def test_an_unreadable_package_is_unavailable(tmp_path: Path) -> None:
    for found in (package_fingerprints(tmp_path / "absent"), package_fingerprints(tmp_path)):
        assert found["pypto"].digest is None
        assert str(tmp_path) in str(found["pypto"].reason)
    (tmp_path / "loop").symlink_to(".")
    assert "itself" in str(package_fingerprints(tmp_path)["runtime"].reason)
