"""Copies the ``.pto`` files out of a generated directory: ``select_pto GENERATED OUT``."""

import shutil
import sys
from pathlib import Path

if __name__ == "__main__":
    generated, out = map(Path, sys.argv[1:])
    for path in sorted((generated / "ptoas").glob("*.pto")):
        shutil.copyfile(path, out / path.name)
