"""Entry point of `python -m pypto.toolchain`."""

import sys

from pypto.toolchain.cli import main

if __name__ == "__main__":
    sys.exit(main())
