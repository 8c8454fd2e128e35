"""``python -m pypto.diagnostics``."""

import sys

from pypto.diagnostics.cli import main

if __name__ == "__main__":
    sys.exit(main())
