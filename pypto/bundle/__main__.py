"""``python -m pypto.bundle``."""

from pypto.bundle.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
