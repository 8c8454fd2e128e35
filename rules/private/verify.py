"""Checks a bundle in an action: ``verify BUNDLE --out FILE``; writes the bundle's digest."""

import argparse
import sys
from pathlib import Path

from pypto.bundle.errors import BundleDamaged, BundleIncompatible
from pypto.bundle.reading import open_bundle

if __name__ == "__main__":
    ask = argparse.ArgumentParser()
    ask.add_argument("bundle", type=Path)
    ask.add_argument("--out", type=Path, required=True)
    given = ask.parse_args()
    try:
        bundle = open_bundle(given.bundle)
        bundle.verify()
    except (BundleDamaged, BundleIncompatible) as error:
        sys.exit(f"error: {error}")
    given.out.write_text(f"{bundle.digest}\n", encoding="ascii")
