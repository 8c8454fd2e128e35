"""No damaged byte is served (MAN); the long form is `campaign.py mutations`."""

from __future__ import annotations

import mutations
import pytest
from artifact_samples import READY, sample_key

from pypto.jit.artifact_cache import LookupStatus


def test_every_flip_and_every_truncation() -> None:
    """MAN-22, MAN-25 to MAN-27: every byte of every file, three other values each, and every shorter length."""
    with mutations.Entry() as entry:
        sizes = sum(path.stat().st_size for path in entry.directory.rglob("*") if path.is_file())
        assert mutations.flips_and_truncations(entry) == 4 * sizes + 4


@pytest.mark.parametrize("seed", [1, 2])
def test_changed_markers(seed: int) -> None:
    """MAN-20, MAN-24, MAN-25, MAN-27, MAN-43: random edits of bytes and of structure, and markers over 16 MiB."""
    with mutations.Entry() as entry:
        assert mutations.mutate_markers(entry, 5000, seed) == 5003


def test_changed_trees() -> None:
    """MAN-23, MAN-26, MAN-34 to MAN-36, MAN-39: files added, removed, swapped, renamed; links, FIFOs, devices."""
    with mutations.Entry() as entry:
        assert mutations.mutate_trees(entry, 600, 1) == 600


def test_changed_bundles() -> None:
    assert mutations.mutate_bundles(1500, 1) == 1500


def test_a_marker_that_fills_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """MAN-20, MAN-43: canonical JSON of 16 MiB, deep and with a repeated field at its end, ends soon."""
    with mutations.Entry() as entry, mutations.time_limit(120):
        fields = b",".join(b'"%07d":0' % number for number in range(1_400_000))
        for text in (b"{" + fields + b',"0000001":0}', b"[" * (1 << 24), b'{"a":' * 3_000_000, b"9" * (1 << 24)):
            entry.marker.write_bytes(text[: 1 << 24])
            entry.rejected()


def test_a_large_file_is_not_read_when_its_size_is_wrong() -> None:
    """A file of a terabyte that is no part of the entry, and one in a file's place."""
    with mutations.Entry() as entry, mutations.time_limit(120):
        for name in ("extra", "kernel_config.json"):
            kept = entry.directory.joinpath(name).read_bytes() if name != "extra" else None
            with open(entry.directory / name, "r+b" if kept is not None else "wb") as file:
                file.truncate(1 << 40)
            entry.rejected()
            assert "1099511627776" in str(entry.store.lookup(sample_key(), READY).reason)
            entry.directory.joinpath(name).unlink()
            if kept is not None:
                entry.directory.joinpath(name).write_bytes(kept)
        assert entry.store.lookup(sample_key(), READY).status is LookupStatus.HIT
