"""Bundles whose writing was cut short, and bundles that change while they are used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from artifact_samples import sample_environment
from bundle_samples import make_bundle, seal_input

from pypto.bundle import BundleDamaged, import_bundle, write_bundle, writing

ROOT = Path(__file__).parents[2]


def test_a_killed_writer_leaves_no_bundle(tmp_path: Path) -> None:
    """`bundle.json` comes last: without it there is nothing to open."""
    script = (
        "import sys, threading\nfrom pathlib import Path\nfrom bundle_samples import *\n"
        "from pypto.bundle import description\n"
        "def halt(self):\n    print('stopped', flush=True); threading.Event().wait()\n"
        "description.BundleDescription.encode = halt\n"
        "make_bundle(Path(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    places = [ROOT, ROOT / "tests/unit/artifact_cache", ROOT / "tests/unit/bundle"]
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "b"), str(tmp_path / "in")],
        env={"PYTHONPATH": os.pathsep.join(map(str, places))},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped\n"
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / "b/artifacts").is_dir()
    with pytest.raises(BundleDamaged, match=r"no bundle\.json"):
        import_bundle(tmp_path / "b")


def test_a_failed_writer_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = seal_input(tmp_path / "in", "mul", "1", "S")
    real = writing.write_file
    calls = []

    def failing(*arguments: object, **options: object) -> None:
        calls.append(arguments)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")
        real(*arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(writing, "write_file", failing)
        with pytest.raises(OSError, match="No space"):
            write_bundle(tmp_path / "out", sample_environment(), [item])
    assert list((tmp_path / "out").iterdir()) == []
    write_bundle(tmp_path / "out", sample_environment(), [item])
    import_bundle(tmp_path / "out").verify()


def test_a_bundle_that_is_replaced_while_it_is_open(tmp_path: Path) -> None:
    """Bytes of another bundle in the same place never pass for those that were opened."""
    path = make_bundle(tmp_path / "b", tmp_path / "in")
    bundle = import_bundle(path)
    path.rename(tmp_path / "old")
    write_bundle(path, sample_environment("f"), [seal_input(tmp_path / "new", "mul", "1", "S")])
    for entry in bundle.entries:
        with pytest.raises(BundleDamaged):
            entry.ready.load()
    assert import_bundle(path).digest != bundle.digest
