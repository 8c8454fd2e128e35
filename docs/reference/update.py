"""Copies generated pages into the source tree: ``update PAGE...``."""

import os
import shutil
import sys
from pathlib import Path

if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        target = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"], "docs/reference", path.name)
        target.unlink(missing_ok=True)
        shutil.copyfile(path, target)
