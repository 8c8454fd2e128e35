"""Entry point of ``python -m pypto.jit``."""

import sys

from pypto.jit.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
