"""The binary stage as a whole: from a generated directory to a READY one, for one chip or for several."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.build.assemble import assemble
from pypto.build.compile_ import compile_
from pypto.build.layout import BINARY_MANIFEST, CONFIG, chips_of, copy_file, new_directory, read_config, write_file

if TYPE_CHECKING:
    from pypto.toolchain.host import Tools


def build_binaries(generated: Path, toolchain: Tools, out: Path, scratch: Path) -> tuple[str, ...]:
    """Write the READY directory of a generated one into ``out`` (absent or empty); scratch folders are in ``scratch``.

    Returns the files that a compiler read and no identity covers, as `compile_`.

    Raises:
        ToolError: a tool failed on a chip; the others may not have been tried.
        BuildError: a directory cannot be used.
    """
    chips = chips_of(read_config(generated))
    if not chips:
        return _one_chip(generated, toolchain, out, scratch)
    from pypto.runtime.distributed_manifest import write_parent_manifest

    new_directory(out)
    uncovered: set[str] = set()
    for chip in chips:
        uncovered.update(_one_chip(generated / chip, toolchain, out / chip, scratch))
    copy_file(generated / CONFIG, out, CONFIG)
    config = read_config(generated)
    manifests = {chip: (out / chip / BINARY_MANIFEST).read_bytes() for chip in chips}
    write_file(out, BINARY_MANIFEST, write_parent_manifest(config, manifests))
    return tuple(sorted(uncovered))


def _one_chip(generated: Path, toolchain: Tools, out: Path, scratch: Path) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(prefix=".assembled.", dir=scratch) as assembled:
        assemble(generated, toolchain, Path(assembled))
        return compile_(generated, Path(assembled), toolchain, out)
