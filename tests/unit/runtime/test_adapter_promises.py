"""What the adapter of the store promises besides its results: its form, what is checked when, and its page."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from adapter_stand_ins import CHIP, Builds, bound, chip_files, kernel, key, publish, runtime_of

import pypto
import pypto.runtime
from pypto._identity.records import canonical_json
from pypto.jit.artifact_cache import ArtifactKey, ArtifactState, ArtifactStore
from pypto.jit.artifact_cache import publish as publication
from pypto.jit.artifact_cache.store import BuildStatus
from pypto.runtime import _artifact_runtime
from pypto.runtime._artifact_runtime import bind_artifact, restore_artifact
from pypto.runtime.compiled import Origin

PACKAGE = Path(pypto.__file__).parent
PAGE = PACKAGE.parent / "docs/runtime-adapter.md"


def test_rt_01_02_11_18_the_form_of_the_adapter() -> None:
    assert list(inspect.signature(bind_artifact).parameters)[:4] == [
        "compiled",
        "store",
        "generated_handle",
        "run_directory",
    ]
    assert list(inspect.signature(restore_artifact).parameters)[:3] == ["store", "ready_handle", "run_directory"]
    for public in (pypto, pypto.runtime):
        names = {*dir(public), *getattr(public, "__all__", ())}
        assert not {"bind_artifact", "restore_artifact", "ArtifactRuntime", "ArtifactStore"} & names


def test_rt_03_keys_are_complete() -> None:
    complete = key()
    for identity, source, specialization in (
        (None, complete.source_digest, complete.specialization_digest),
        (complete.environment, complete.source_digest[:16], complete.specialization_digest),
        (complete.environment, complete.source_digest, ""),
    ):
        with pytest.raises(ValueError):
            ArtifactKey(identity, source, specialization)  # type: ignore[arg-type]


def test_rt_06_no_placeholder_digests_in_the_package() -> None:
    """No digest is written down, and none is made of one repeated digit."""
    written = re.compile(r"[0-9a-f]{64}")
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not written.fullmatch(node.value), f"{path}:{node.lineno}"
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                sizes = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
                assert not (64 in sizes and any(isinstance(size, str) for size in sizes)), f"{path}:{node.lineno}"


@pytest.mark.parametrize("missing", ["orchestration/main.cpp", "kernels/aiv/add.cpp", "ptoas/add.pto"])
def test_rt_05_every_file_that_the_configuration_names_is_there(
    store: ArtifactStore, tmp_path: Path, missing: str
) -> None:
    entry = {
        "name": "add",
        "core": "aiv",
        "pto": "ptoas/add.pto",
        "cpp": "ptoas/add.cpp",
        "source": "kernels/aiv/add.cpp",
        "binary": "prebuilt/kernels/add.so",
    }
    files = chip_files(config={**CHIP, "kernels": [entry]})
    files |= {"kernels/aiv/add.cpp": b"", "ptoas/add.pto": b""}
    files.pop(missing)
    handle = publish(store, files)
    with pytest.raises(ValueError, match="does not hold exactly the generated files that its configuration names"):
        bind_artifact(kernel(), store, handle, tmp_path / "run")


def test_rt_35_parts_of_what_is_not_supported_are_stored_one_by_one(builds: Builds, tmp_path: Path) -> None:
    for part in ("one", "two"):
        store = ArtifactStore(tmp_path / part, private_root=tmp_path / "private")
        handle = publish(store, chip_files(config={**CHIP, "entry": part}))
        compiled = bound(store, handle, builds, tmp_path)
        compiled.ensure_ready()
        restored = restore_artifact(store, runtime_of(compiled).handle, tmp_path / "run")
        assert (restored.state, restored.origin) == ("READY", Origin.SHARED)
    assert [files["kernel_config.json"] for files in builds.generated] == [
        canonical_json({**CHIP, "entry": part}) for part in ("one", "two")
    ]


def test_rt_67_a_copy_that_differs_is_not_published(
    store: ArtifactStore, builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new payload is read back before it is published, and what is used are the bytes that were read back."""
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)
    real = publication.write_file

    def damaging(target: int, path: str, data: bytes, **options: Any) -> None:
        real(target, path, b"BAD" if path.endswith(".so") else data, **options)

    with monkeypatch.context() as patch:
        patch.setattr(publication, "write_file", damaging)
        compiled.ensure_ready()
    assert builds.finished == [BuildStatus.PRIVATE]
    assert runtime_of(compiled).files().files["prebuilt/orchestration/main.so"] == b"ELF"
    assert not list(store.root.rglob("ready"))

    again = bound(store, runtime_of(compiled).handle, builds, tmp_path)
    again.ensure_ready()
    (published,) = store.root.rglob("ready/prebuilt/orchestration/main.so")
    published.write_bytes(b"BAD")
    assert runtime_of(again).files().files["prebuilt/orchestration/main.so"] == b"ELF"


class Hashed:
    """Counts how often each content is hashed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.contents: Counter[bytes] = Counter()
        real = hashlib.sha256

        def sha256(data: bytes = b"", **options: Any) -> Any:
            self.contents[bytes(data)] += 1
            return real(data, **options)

        monkeypatch.setattr(hashlib, "sha256", sha256)

    def of(self, content: bytes) -> int:
        found = self.contents[content]
        self.contents.clear()
        return found


def test_rt_99_binding_hashes_once_promotion_at_its_boundaries_loading_never(
    store: ArtifactStore, builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = publish(store, chip_files())
    compiled = kernel()
    hashed = Hashed(monkeypatch)
    bind_artifact(compiled, store, handle, tmp_path / "run", promotion=builds.promotion())
    assert hashed.of(b"int main;") == 1
    compiled.ensure_ready()
    # The copy to build from, what was built, and what was published of it.
    assert hashed.of(b"int main;") == 3
    runtime_of(compiled).files()
    assert hashed.of(b"int main;") == 0


class _Opened:
    """Names of the files that this process opens, while it is wanted: a hook cannot be removed."""

    def __init__(self) -> None:
        self.names: list[str] | None = None
        self.hooked = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.names is not None and event == "open" and isinstance(arguments[0], (str, bytes)):
            self.names.append(os.path.basename(os.fsdecode(arguments[0])))


_opened = _Opened()


@pytest.fixture
def files_opened() -> Iterator[list[str]]:
    if not _opened.hooked:
        sys.addaudithook(_opened)
        _opened.hooked = True
    _opened.names = []
    yield _opened.names
    _opened.names = None


def test_rt_71_metadata_is_read_once(
    store: ArtifactStore, builds: Builds, tmp_path: Path, files_opened: list[str]
) -> None:
    compiled = bound(store, publish(store, chip_files()), builds, tmp_path)
    compiled.ensure_ready()
    handle = runtime_of(compiled).handle
    bare = type(handle)(handle.root, handle.key, handle.spec, handle.records)
    files_opened.clear()
    restored = restore_artifact(store, bare, tmp_path / "run")
    assert files_opened.count("kernel_config.json") == files_opened.count("binary_manifest.json") == 1
    files_opened.clear()
    restored.ensure_ready()
    assert runtime_of(restored).files().files["kernel_config.json"]
    assert files_opened == []


def test_rt_94_entries_of_other_states_and_stores(store: ArtifactStore, tmp_path: Path) -> None:
    handle = publish(store, chip_files())
    assert handle.spec.state is ArtifactState.GENERATED
    with pytest.raises(ValueError, match="is no READY entry"):
        restore_artifact(store, handle, tmp_path / "run")
    with pytest.raises(ValueError, match="is not one of the store"):
        bind_artifact(kernel(), ArtifactStore(tmp_path / "other"), handle, tmp_path / "run")


def test_rt_02_04_05_12_14_65_79_90_dia_15_duties_of_the_caller_are_on_the_page() -> None:
    """And its functions say so too."""
    page = " ".join(PAGE.read_text().split())
    for duty in (
        "is internal",
        "the very inputs that the object was compiled from",
        "lists all generated files that are required",
        "a handle that a lookup of this process validated",
        "belongs to one session of one object",
        "built for the runtime ABI that the key's runtime speaks",
        "published files stay where and as they are until every user has released them",
        "is not removed: its owner removes it once no user is left",
    ):
        assert duty in page, duty
    said = " ".join(f"{_artifact_runtime.__doc__} {bind_artifact.__doc__}".split())
    for words in ("the very inputs", "keeps published files where and as they are", "this object's own"):
        assert words in said


def test_rt_11_15_18_the_example_of_the_page_runs(store: ArtifactStore, builds: Builds, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    loaded: list[Any] = []
    compiled = kernel()
    names = {
        "compiled": compiled,
        "store": store,
        "generated_handle": publish(store, chip_files()),
        "run_directory": tmp_path / "run",
        "another_run_directory": tmp_path / "other",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_artifact_runtime, "Promotion", builds.promotion)
        patch.setattr(type(compiled), "load", lambda self: loaded.append(self) or self.ensure_ready())
        exec(example, names)
    assert loaded == [compiled, names["restored"]]
    assert names["ready_handle"].spec.state is ArtifactState.BINARY_READY
