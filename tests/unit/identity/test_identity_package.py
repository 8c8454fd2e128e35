"""The package's own content: equal wherever it stands."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pypto._identity.package import component_of, default_package_root, package_files, package_fingerprints

PACKAGE = default_package_root()


def digests(root: Path) -> dict[str, str]:
    found = package_fingerprints(root)
    assert all(fingerprint.reason is None for fingerprint in found.values())
    return {name: str(fingerprint.digest) for name, fingerprint in found.items()}


def copy(target: Path) -> Path:
    for _, relative in package_files(PACKAGE):
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PACKAGE / relative, target / relative)
    return target


def test_checkout_copy_and_tree_of_links_are_equal(tmp_path: Path) -> None:
    """As a wheel (fresh files), as runfiles (links to files), as an editable install (a link to the folder)."""
    expected = digests(PACKAGE)
    assert digests(copy(tmp_path / "wheel/pypto")) == expected
    for _, relative in package_files(PACKAGE):
        link = tmp_path / "runfiles/pypto" / relative
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(PACKAGE / relative)
    assert digests(tmp_path / "runfiles/pypto") == expected
    (tmp_path / "editable").symlink_to(PACKAGE)
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
def test_what_does_not_count(tmp_path: Path, name: str) -> None:
    root = copy(tmp_path / "pypto")
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("x")
    assert digests(root) == digests(PACKAGE)
    assert component_of(name) is None


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("new.py", "pypto"), ("ir/deep/new.py", "pypto"), ("toolchain/new.json", "pypto"),
        ("toolchain/compat/include/new.hpp", "pypto"), ("runtime/new.py", "runtime"),
        ("runtime/native/include/pypto/new.h", "runtime"), ("runtime/native/new.hpp", "runtime"),
    ],
)  # fmt: skip
def test_a_new_file_changes_its_component_alone(tmp_path: Path, name: str, component: str) -> None:
    root = copy(tmp_path / "pypto")
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("x")
    before, after = digests(PACKAGE), digests(root)
    assert {part for part in before if before[part] != after[part]} == {component}


def test_one_byte_and_one_name_count(tmp_path: Path) -> None:
    root = copy(tmp_path / "one")
    with (root / "__init__.py").open("ab") as file:
        file.write(b"\n")
    renamed = copy(tmp_path / "two")
    (renamed / "ir/nodes.py").rename(renamed / "ir/nodes2.py")
    assert len({digests(PACKAGE)["pypto"], digests(root)["pypto"], digests(renamed)["pypto"]}) == 3


def test_nothing_that_the_package_needs_is_left_out() -> None:
    """A new kind of resource must get a pattern, or be named here as something that never acts on a build."""
    uncounted = {
        relative
        for folder, folders, names in os.walk(PACKAGE)
        for relative in (os.path.relpath(os.path.join(folder, name), PACKAGE) for name in names)
        if component_of(relative) is None
        and "__pycache__" not in relative
        and not any(part.startswith(".") for part in relative.split("/"))
    }
    assert {name for name in uncounted if os.path.basename(name) not in ("BUILD.bazel", "README.md")} == set()


def test_an_unreadable_package_is_unavailable(tmp_path: Path) -> None:
    for found in (package_fingerprints(tmp_path / "absent"), package_fingerprints(tmp_path)):
        assert found["pypto"].digest is None
        assert str(tmp_path) in str(found["pypto"].reason)
    (tmp_path / "loop").symlink_to(".")
    assert "itself" in str(package_fingerprints(tmp_path)["runtime"].reason)
