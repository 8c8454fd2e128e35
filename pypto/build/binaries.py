"""The binary stage as a whole: from a generated directory to a READY one, for one chip or for several."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.build.assemble import assemble
from pypto.build.compile_ import compile_

if TYPE_CHECKING:
    from pypto.toolchain.host import Tools


def build_binaries(generated: Path, toolchain: Tools, out: Path, scratch: Path) -> tuple[str, ...]:
    """Write the READY directory of a generated one into ``out`` (absent or empty); scratch folders are in ``scratch``.

    Returns the files that a compiler read and no identity covers, as `compile_`.

    Raises:
        ToolError: a tool failed on a chip; the others may not have been tried.
        BuildError: a directory cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix=".assembled.", dir=scratch, ignore_cleanup_errors=True) as assembled:
        assemble(generated, toolchain, Path(assembled))
        return compile_(generated, Path(assembled), toolchain, out)
