"""``python -m pypto.build``."""

import sys

from pypto.build.cli import main

if __name__ == "__main__":
    sys.exit(main())
