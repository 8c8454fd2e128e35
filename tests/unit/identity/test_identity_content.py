"""Content roots and fingerprints (CNT)."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pypto._identity import ContentRoot, Fingerprint, fingerprint_content, fingerprint_extra_sources
from pypto._identity import content as content_module


def digest(*paths: Path) -> str:
    result = fingerprint_content([ContentRoot(path) for path in paths])
    assert result.reason is None
    assert result.digest is not None
    return result.digest


def refused(*paths: Path) -> str:
    result = fingerprint_content([ContentRoot(path) for path in paths])
    assert result.digest is None
    assert result.reason
    return result.reason


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/b/c/deep.hpp").write_bytes(b"deep")
    (root / "top.txt").write_bytes(b"top")
    return root


def test_result_is_a_digest_or_a_reason() -> None:
    """CNT-45."""
    for arguments in (("d", "r"), (None, None)):
        with pytest.raises(ValueError, match="either"):
            Fingerprint(*arguments)


def test_path_is_absolute_at_construction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CNT-01."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one/f").write_text("1")
    monkeypatch.chdir(tmp_path / "one")
    root = ContentRoot("f")
    monkeypatch.chdir(tmp_path)
    assert root.path == str(tmp_path / "one/f")
    assert fingerprint_content([root]) == fingerprint_content([ContentRoot(tmp_path / "one/f")])


def test_parent_steps_are_left_to_the_file_system(tmp_path: Path) -> None:
    """CNT-02, CNT-03: `link/../file` is the file beside the link's target."""
    (tmp_path / "far/dir").mkdir(parents=True)
    (tmp_path / "far/file").write_text("far")
    (tmp_path / "file").write_text("near")
    (tmp_path / "link").symlink_to(tmp_path / "far/dir")
    root = ContentRoot(str(tmp_path / "link") + "/../file")
    assert "/../" in root.path
    before = fingerprint_content([root])
    (tmp_path / "file").write_text("near, changed")
    assert fingerprint_content([root]) == before
    (tmp_path / "far/file").write_text("far, changed")
    assert fingerprint_content([root]) != before


def test_raw_bytes(tmp_path: Path) -> None:
    """CNT-04."""
    file = tmp_path / "f"
    seen = set()
    for data in (b"a\n", b"a\r\n", b"\xef\xbb\xbfa\n", b"a\n\0", b"\xff\xfe", b""):
        file.write_bytes(data)
        seen.add(digest(file))
    assert len(seen) == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda t: (t / "a/b/c/deep.hpp").write_bytes(b"Deep"),
        lambda t: (t / "a/b/c/deep.hpp").rename(t / "a/b/c/other.hpp"),
        lambda t: (t / "a/b/c/deep.hpp").rename(t / "a/deep.hpp"),
        lambda t: (t / "empty").write_bytes(b""),
        lambda t: (t / ".hidden").write_bytes(b"x"),
        lambda t: (t / "a/noextension").write_bytes(b"x"),
        lambda t: (t / "a/emptyfolder").mkdir(),
        lambda t: (t / "top.txt").unlink(),
    ],
)
def test_everything_in_a_directory_takes_part(tree: Path, change: Callable[[Path], object]) -> None:
    """CNT-05, CNT-09, CNT-15, CNT-42."""
    before = digest(tree)
    change(tree)
    assert digest(tree) != before


@pytest.mark.parametrize("name", [".git/config", "__pycache__/x.py", "a/__pycache__/y", "x.pyc", "a/b/z.pyo", ".git"])
def test_exclusions(tree: Path, name: str) -> None:
    """CNT-11 to CNT-14."""
    before = digest(tree)
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_bytes(b"1")
    assert digest(tree) == before
    (tree / name).write_bytes(b"2")
    assert digest(tree) == before


def test_exclusions_do_not_hold_for_roots(tmp_path: Path) -> None:
    """CNT-38."""
    (tmp_path / "x.pyc").write_bytes(b"1")
    before = digest(tmp_path / "x.pyc")
    (tmp_path / "x.pyc").write_bytes(b"2")
    assert digest(tmp_path / "x.pyc") != before


def test_order_of_the_file_system_does_not_act(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CNT-06."""
    before = digest(tree)
    real = os.listdir
    monkeypatch.setattr(content_module.os, "listdir", lambda path: list(reversed(sorted(real(path)))))
    assert digest(tree) == before


def test_order_and_boundaries_of_roots(tmp_path: Path) -> None:
    """CNT-07, CNT-08, CNT-44."""
    for name in ("a", "b"):
        (tmp_path / "d" / name).mkdir(parents=True)
        (tmp_path / "d" / name / "f").write_text("same")
    a, b = tmp_path / "d/a", tmp_path / "d/b"
    assert len({digest(a, b), digest(b, a), digest(tmp_path / "d"), digest(a), digest(a, a)}) == 5


def test_metadata_does_not_count_but_bytes_do(tree: Path) -> None:
    """CNT-29, CNT-30, CNT-43."""
    file = tree / "top.txt"
    before = digest(tree)
    os.utime(file, (1, 1))
    file.chmod(0o755)
    assert digest(tree) == before
    file.write_bytes(b"TOP")
    os.utime(file, (1, 1))
    assert digest(tree) != before


def test_links_count_by_target_and_content(tmp_path: Path) -> None:
    """CNT-20, CNT-21, CNT-40."""
    (tmp_path / "one").write_text("same")
    (tmp_path / "two").write_text("same")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to("../one")
    first = digest(tree)
    (tree / "link").unlink()
    (tree / "link").symlink_to("../two")
    second = digest(tree)
    (tmp_path / "two").write_text("other")
    third = digest(tree)
    (tree / "link").rename(tree / "renamed")
    assert len({first, second, third, digest(tree)}) == 4


def test_two_links_to_one_directory_are_no_cycle(tree: Path) -> None:
    """CNT-41."""
    (tree / "x").symlink_to("a")
    (tree / "y").symlink_to("a")
    before = digest(tree)
    (tree / "a/b/c/deep.hpp").write_bytes(b"changed")
    assert digest(tree) != before


def test_broken_links_and_missing_roots(tree: Path, tmp_path: Path) -> None:
    """CNT-22, CNT-27, CNT-28, CNT-46."""
    (tmp_path / "dangling").symlink_to("nowhere")
    assert "dangling" in refused(tmp_path / "dangling")
    assert "absent" in refused(tmp_path / "absent")
    (tree / "broken").symlink_to("nowhere")
    assert "broken" in refused(tree)


def test_cycles(tree: Path, tmp_path: Path) -> None:
    """CNT-23: a link to an ancestor, to itself, and two directories linked to each other."""
    (tree / "a/up").symlink_to("..")
    assert "itself" in refused(tree)
    (tree / "a/up").unlink()
    (tree / "a/self").symlink_to("self")
    assert "self" in refused(tree)
    for name, other in (("p", "q"), ("q", "p")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "link").symlink_to(tmp_path / other)
    assert "itself" in refused(tmp_path / "p")


def test_special_files_do_not_block(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CNT-24."""
    os.mkfifo(tree / "fifo")
    assert "fifo" in refused(tree)
    (tree / "fifo").unlink()
    monkeypatch.chdir(tree)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        assert "sock" in refused(tree)


def test_unreadable_files(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CNT-25; injected, since root reads everything."""
    real = os.open

    def failing(path: object, *arguments: object, **options: object) -> int:
        if str(path).endswith("deep.hpp"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(content_module.os, "open", failing)
    assert "deep.hpp" in refused(tree)


@pytest.mark.parametrize("kind", ["append", "truncate", "replace", "rewrite"])
def test_changes_while_reading(tree: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """CNT-26."""
    file = tree / "top.txt"
    real = os.read

    def change() -> None:
        if kind == "append":
            file.write_bytes(b"top and more")
        elif kind == "truncate":
            file.write_bytes(b"")
        elif kind == "rewrite":
            file.write_bytes(b"TOP")
        else:
            (tree / "new").write_bytes(b"top")
            os.replace(tree / "new", file)

    def read(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        if data == b"top":
            change()
        return data

    monkeypatch.setattr(content_module.os, "read", read)
    assert "changed" in refused(tree)


def test_a_directory_that_changes_while_it_is_listed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CNT-47."""
    real = os.read

    def read(descriptor: int, size: int) -> bytes:
        (tree / "late").write_bytes(b"")
        return real(descriptor, size)

    monkeypatch.setattr(content_module.os, "read", read)
    assert "changed" in refused(tree)


def test_empty_inputs(tmp_path: Path) -> None:
    """CNT-18, CNT-19, CNT-42."""
    (tmp_path / "empty").mkdir()
    assert fingerprint_extra_sources([]).digest is not None
    assert fingerprint_extra_sources([tmp_path / "empty"]).digest is not None
    assert fingerprint_content([]).reason is not None
    assert "empty" in str(fingerprint_content([tmp_path / "empty"]).reason)


def test_extra_sources_take_python_from_directories(tree: Path) -> None:
    """CNT-16, CNT-17, CNT-33, CNT-37."""
    (tree / "m.py").write_text("x = 1\n")
    before = fingerprint_extra_sources([tree])
    (tree / "top.txt").write_text("changed")
    (tree / "stub.pyi").write_text("x: int")
    (tree / "new").mkdir()
    os.mkfifo(tree / "fifo")
    assert fingerprint_extra_sources([tree]) == before
    (tree / "m.py").write_text("x = 2\n")
    assert fingerprint_extra_sources([tree]) != before
    direct = fingerprint_extra_sources([tree / "top.txt"])
    (tree / "top.txt").write_text("changed again")
    assert fingerprint_extra_sources([tree / "top.txt"]) != direct
    assert fingerprint_extra_sources([tree, tree / "missing"]).digest is None


def test_special_files_among_extra_sources(tree: Path) -> None:
    """CNT-48: what is no Python source by its name is not looked at."""
    before = fingerprint_extra_sources([tree])
    os.mkfifo(tree / "special")
    assert fingerprint_extra_sources([tree]) == before
    os.mkfifo(tree / "special.py")
    assert "special.py" in str(fingerprint_extra_sources([tree]).reason)


def test_broken_links_among_extra_sources(tree: Path) -> None:
    """CNT-39: a link that could be a directory counts, one that is excluded by its name does not."""
    (tree / ".git").mkdir()
    (tree / ".git/broken").symlink_to("nowhere")
    assert fingerprint_extra_sources([tree]).digest is not None
    (tree / "broken").symlink_to("nowhere")
    assert "broken" in str(fingerprint_extra_sources([tree]).reason)


def test_moved_trees_differ(tree: Path, tmp_path: Path) -> None:
    """CNT-09, CNT-10, LIM-05."""
    shutil.copytree(tree, tmp_path / "copy")
    assert digest(tree) != digest(tmp_path / "copy")
