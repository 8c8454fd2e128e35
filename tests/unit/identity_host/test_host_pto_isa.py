"""PTO-ISA in the host world: the pin, checkouts that git accounts for, content of anything else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from host_world import BUILD, CONTENT, STRICT, World, commit, git, repository, write

from pypto._identity.host import git as git_module
from pypto._identity.host import pto_isa as pto_isa_module
from pypto._identity.host.pto_isa import PtoIsaUnavailable, ensure_pto_isa_root, verified_revision
from pypto._identity.host.selection import PtoIsa

FILES = {"include/pto/pto-inst.hpp": "#pragma once\n", "include/a.h": "a\n", ".gitignore": "*.gen\n/build/\n"}
VARIABLES = dict(os.environ)


@pytest.fixture
def remote(tmp_path: Path) -> tuple[Path, str]:
    """A repository to clone from, and the pinned commit; a later commit is in it, too."""
    folder = tmp_path / "remote"
    pin = repository(folder, FILES)
    commit(folder, {"include/a.h": "newer\n"})
    return folder, pin


@pytest.fixture
def checkout(tmp_path: Path, remote: tuple[Path, str]) -> PtoIsa:
    """A clean checkout at the pin."""
    folder, pin = remote
    git(tmp_path, "clone", "-q", str(folder), "isa")
    git(tmp_path / "isa", "checkout", "-q", "--detach", pin)
    return PtoIsa(str(tmp_path / "isa"), pin, str(folder))


def modify(root: Path) -> None:
    write(root / "include/a.h", "A\n")


def stage(root: Path) -> None:
    modify(root)
    git(root, "add", "include/a.h")


def remove(root: Path) -> None:
    (root / "include/a.h").unlink()


def untracked(root: Path) -> None:
    write(root / "include/new.h", "")


def ignored_file(root: Path) -> None:
    write(root / "include/made.gen", "generated\n")


def ignored_folder(root: Path) -> None:
    write(root / "build/x.h", "generated\n")


def assumed_unchanged(root: Path) -> None:
    git(root, "update-index", "--assume-unchanged", "include/a.h")
    modify(root)


def skipped(root: Path) -> None:
    git(root, "update-index", "--skip-worktree", "include/a.h")
    modify(root)


def excluded(root: Path) -> None:
    write(root / ".git/info/exclude", "new.h\n")
    untracked(root)


def same_size_and_time(root: Path) -> None:
    status = os.stat(root / "include/a.h")
    with open(root / "include/a.h", "r+") as file:
        file.write("A")
    os.utime(root / "include/a.h", ns=(status.st_atime_ns, status.st_mtime_ns))


def blinded_by_configuration(root: Path) -> None:
    git(root, "config", "core.trustctime", "false")
    git(root, "config", "core.checkStat", "minimal")
    git(root, "config", "status.showUntrackedFiles", "no")
    same_size_and_time(root)


def line_endings(root: Path) -> None:
    (root / "include/a.h").unlink()
    git(root, "config", "core.autocrlf", "true")
    git(root, "checkout", "--", "include/a.h")
    assert (root / "include/a.h").read_bytes() == b"a\r\n"
    assert git(root, "status", "--porcelain", "--ignored") == ""


def attributes(root: Path) -> None:
    (root / "include/a.h").unlink()
    write(root / ".git/info/attributes", "*.h text eol=crlf\n")
    git(root, "checkout", "--", "include/a.h")
    assert (root / "include/a.h").read_bytes() == b"a\r\n"


DIRTY = [modify, stage, remove, untracked, assumed_unchanged, skipped, same_size_and_time, blinded_by_configuration]
BENT = [line_endings, attributes]
HIDDEN = [ignored_file, ignored_folder, excluded]


class TestEnsure:
    """The resolution: only what is proved to be the pin is returned."""

    def test_clean_checkout(self, tmp_path: Path, checkout: PtoIsa) -> None:
        """VER-06, VER-07."""
        assert ensure_pto_isa_root(checkout, tmp_path / "cache", VARIABLES) == checkout.root
        assert not (tmp_path / "cache").exists()

    @pytest.mark.parametrize("change", [*DIRTY, *BENT], ids=lambda change: change.__name__)
    def test_dirty_checkout(self, tmp_path: Path, checkout: PtoIsa, change: Callable[[Path], None]) -> None:
        """VER-06, VER-08: cloned anew; the user's tree stays as it is."""
        assert checkout.root is not None
        change(Path(checkout.root))
        before = {str(p): p.read_bytes() for p in Path(checkout.root, "include").rglob("*") if p.is_file()}
        root = ensure_pto_isa_root(checkout, tmp_path / "cache", VARIABLES)
        assert root == str(tmp_path / "cache" / str(checkout.revision))
        assert {path: Path(root, path).read_text() for path in FILES} == FILES
        assert {str(p): p.read_bytes() for p in Path(checkout.root, "include").rglob("*") if p.is_file()} == before
        assert ensure_pto_isa_root(checkout, tmp_path / "cache", VARIABLES) == root

    @pytest.mark.parametrize("change", HIDDEN, ids=lambda change: change.__name__)
    def test_ignored_paths_are_clean_to_it(
        self, tmp_path: Path, checkout: PtoIsa, change: Callable[[Path], None]
    ) -> None:
        """VER-10: that is why the adapter asks again."""
        change(Path(str(checkout.root)))
        assert ensure_pto_isa_root(checkout, tmp_path / "cache", VARIABLES) == checkout.root

    def test_another_commit(self, tmp_path: Path, checkout: PtoIsa) -> None:
        """VER-07, VER-08."""
        git(Path(str(checkout.root)), "checkout", "-q", "main")
        root = ensure_pto_isa_root(checkout, tmp_path / "cache", VARIABLES)
        assert Path(root, "include/a.h").read_text() == "a\n"

    def test_a_spoilt_clone_is_made_anew(self, tmp_path: Path, checkout: PtoIsa) -> None:
        choice = PtoIsa(None, checkout.revision, checkout.remote)
        root = Path(ensure_pto_isa_root(choice, tmp_path / "cache", VARIABLES))
        modify(root)
        shutil.rmtree(root / "include/pto")
        assert ensure_pto_isa_root(choice, tmp_path / "cache", VARIABLES) == str(root)
        assert {path: (root / path).read_text() for path in FILES} == FILES
        assert os.listdir(tmp_path / "cache") == [checkout.revision]

    def test_errors(self, tmp_path: Path, checkout: PtoIsa) -> None:
        cache = tmp_path / "cache"
        for choice, message in (
            (PtoIsa(None, None, checkout.remote), "PTO-ISA has no pinned revision; name the commit"),
            (
                PtoIsa(str(tmp_path), checkout.revision),
                f"{tmp_path} is no clean checkout of {checkout.revision}, and no",
            ),
            (PtoIsa(None, checkout.revision, str(tmp_path / "x")), f"PTO-ISA cannot be cloned from {tmp_path}/x"),
            (PtoIsa(None, "1" * 40, checkout.remote), f"{checkout.remote} has no commit {'1' * 40}"),
        ):
            with pytest.raises(PtoIsaUnavailable) as caught:
                ensure_pto_isa_root(choice, cache, VARIABLES)
            assert str(caught.value).startswith(message)
        assert not cache.exists() or not os.listdir(cache)


class TestAdapter:
    @pytest.fixture
    def isa(self, world: World, checkout: PtoIsa) -> Path:
        world.choose(pto_isa=checkout)
        world.set(**{name: value for name, value in VARIABLES.items() if name == "PATH"})
        return Path(str(checkout.root))

    def test_verified_revision(self, world: World, isa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """VER-01, VER-02, VER-09, IDC-10: the revision alone; no file of the tree is opened."""
        inputs = world.components(CONTENT)["pto_isa"]
        assert inputs.verified_revision == git(isa, "rev-parse", "HEAD")
        assert (inputs.roots, inputs.reported_version, inputs.evidence) == ((), None, None)
        monkeypatch.setattr("pypto._identity.content._hash_file", lambda path, status: pytest.fail(f"{path} was read"))
        assert world.component("pto_isa", CONTENT)

    def test_only_pto_isa_has_one(self, world: World, isa: Path) -> None:
        """VER-05."""
        found = [name for name, inputs in world.components(CONTENT).items() if inputs.verified_revision is not None]
        assert found == ["pto_isa"]

    def test_asks_for_ignored_paths(self, world: World, isa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """VER-11."""
        commands = []
        run = git_module._run

        def record(root: str, several: list[list[str]], variables: dict[str, str]) -> Any:
            commands.extend((root, arguments) for arguments in several)
            return run(root, several, variables)

        monkeypatch.setattr(git_module, "_run", record)
        world.components(CONTENT)
        statuses = [(root, arguments) for root, arguments in commands if arguments[0] == "status"]
        assert [(root, "--ignored" in arguments) for root, arguments in statuses] == [(str(isa), True)]

    @pytest.mark.parametrize("change", [*DIRTY, *HIDDEN, *BENT], ids=lambda change: change.__name__)
    def test_falls_back_to_content(self, world: World, isa: Path, change: Callable[[Path], None]) -> None:
        """VER-12 to VER-15: modified after the resolution, untracked, ignored; the content counts, that file too."""
        before = world.component("pto_isa", CONTENT)
        change(isa)
        inputs = world.components(CONTENT)["pto_isa"]
        assert inputs.verified_revision is None
        assert [root.path for root in inputs.roots] == [str(isa)]
        after = world.component("pto_isa", CONTENT)
        write(isa / "include/made.gen", "generated otherwise\n")
        assert len({before, after, world.component("pto_isa", CONTENT)}) == 3

    def test_another_commit_is_content(self, world: World, isa: Path) -> None:
        git(isa, "checkout", "-q", "main")
        assert world.components(CONTENT)["pto_isa"].verified_revision is None

    @pytest.mark.parametrize("how", ["no git", "no repository", "broken repository", "git hangs"])
    def test_no_usable_answer(self, world: World, isa: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """VER-16, VER-17: content, not unavailable."""
        if how == "no git":
            world.set(PATH="/nonexistent")
        elif how == "no repository":
            # A folder inside another checkout is not that one.
            shutil.rmtree(isa / ".git")
            repository(isa.parent / "outer", {"x": ""})
            isa.rename(isa.parent / "outer/isa")
            world.choose(pto_isa=PtoIsa(str(isa.parent / "outer/isa"), world.selection.pto_isa.revision))
        elif how == "broken repository":
            (isa / ".git/HEAD").unlink()
        else:
            monkeypatch.setattr(git_module, "_LIMIT", 0.0)
        inputs = world.components(CONTENT)["pto_isa"]
        assert (inputs.verified_revision, inputs.unavailable_reason) == (None, None)
        assert len(inputs.roots) == 1

    def test_versions_in_names_and_files_prove_nothing(self, world: World, isa: Path) -> None:
        """VER-03, VER-04."""
        revision = str(world.selection.pto_isa.revision)
        shutil.rmtree(isa / ".git")
        named = isa.rename(isa.parent / revision)
        write(named / "VERSION", revision)
        world.choose(pto_isa=PtoIsa(str(named), revision))
        assert world.components(CONTENT)["pto_isa"].verified_revision is None

    def test_content_that_cannot_be_read(self, world: World, isa: Path) -> None:
        """VER-18: nothing is left out silently."""
        (isa / "include/gone.h").symlink_to("nowhere")
        assert "the link cannot be followed" in (world.reason("pto_isa", CONTENT) or "")

    def test_strict_build_verifies(self, world: World, isa: Path) -> None:
        assert world.components(STRICT)["pto_isa"].verified_revision is not None
        ignored_file(isa)
        assert world.components(STRICT)["pto_isa"].verified_revision is None


class TestPin:
    def test_build_looks_at_the_pin_alone(
        self, world: World, checkout: PtoIsa, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """IDB-61 to IDB-63: no checkout, no git, no network; a missing folder is no matter."""
        monkeypatch.setattr(git_module, "_run", lambda *arguments: pytest.fail(f"git was asked: {arguments}"))
        world.choose(pto_isa=PtoIsa("/nonexistent", checkout.revision))
        assert world.evidence("pto_isa") == {"pin": checkout.revision}

    def test_pin_of_the_runtime(self, world: World) -> None:
        """IDB-61: `pto_isa.pin` of the runtime that is chosen; what the caller names comes first."""
        runtime = world.folder / "runtime"
        write(runtime / "pto_isa.pin", "a" * 40 + "\n")
        world.choose(runtime_root=str(runtime), pto_isa=PtoIsa())
        assert world.evidence("pto_isa") == {"pin": "a" * 40}
        before = world.component("pto_isa")
        write(runtime / "pto_isa.pin", "b" * 40 + "\n")
        assert world.component("pto_isa") != before
        world.choose(pto_isa=PtoIsa(revision="c" * 40))
        assert world.evidence("pto_isa") == {"pin": "c" * 40}

    def test_no_consistency_is_expected(self, world: World) -> None:
        """IDB-04: the caller's pin and the runtime's may disagree."""
        write(world.folder / "runtime/pto_isa.pin", "a" * 40)
        write(world.folder / "runtime/build_version", "1")
        world.choose(runtime_root=str(world.folder / "runtime"), pto_isa=PtoIsa(revision="c" * 40))
        assert world.identity().usable

    @pytest.mark.parametrize("pin", ["main", "a" * 39, "A" * 40, ""])
    def test_incomplete_pins(self, world: World, pin: str) -> None:
        """A branch or a short name may move."""
        world.choose(pto_isa=PtoIsa(revision=pin))
        assert world.reason("pto_isa") == f"the pin of PTO-ISA is no complete commit id: {pin!r}"

    def test_no_pin(self, world: World) -> None:
        """A folder of headers without a pin is its content, under both policies."""
        world.choose(pto_isa=PtoIsa())
        assert world.reason("pto_isa") == "PTO-ISA has neither a pinned revision nor a folder"
        write(world.cwd / "isa/a.h", "1")
        world.choose(pto_isa=PtoIsa("isa"))
        for settings in (BUILD, CONTENT):
            before = world.component("pto_isa", settings)
            write(world.cwd / "isa/a.h", f"{settings.policy} 2")
            assert world.component("pto_isa", settings) != before

    def test_pin_without_a_folder(self, world: World) -> None:
        """When content counts, there must be some."""
        for settings in (CONTENT, STRICT):
            assert world.reason("pto_isa", settings) == "PTO-ISA has no folder to be read"

    def test_no_pin_is_no_proof(self, tmp_path: Path, checkout: PtoIsa) -> None:
        assert verified_revision(str(checkout.root), None, VARIABLES) is None
        assert pto_isa_module.verified_revision(str(checkout.root), checkout.revision, VARIABLES) == checkout.revision
