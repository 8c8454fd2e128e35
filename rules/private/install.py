"""Imports bundles into a live store: ``install BUNDLE... -- [--root DIR]``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from pypto.bundle.errors import BundleDamaged, BundleIncompatible
from pypto.bundle.importing import ImportFailed, import_into_store
from pypto.bundle.reading import open_bundle
from pypto.jit.artifact_cache.store import ArtifactStore
from pypto.jit.config import capture_policy


def main() -> int:
    at = sys.argv.index("--")
    ask = argparse.ArgumentParser(
        prog="bazel run <bundle>.install --", description="Import this bundle into a store of artifacts."
    )
    ask.add_argument("--root", metavar="DIR", help="the store (default: the one that JIT calls use)")
    given = ask.parse_args(sys.argv[at + 1 :])
    # Bazel starts programs in the folder of their runfiles; a relative path is meant from where the user is.
    here = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    root = here / given.root if given.root else Path(capture_policy().root)
    try:
        for path in sys.argv[1:at]:
            bundle = open_bundle(path)
            counts = import_into_store(bundle, ArtifactStore(root))
            print(f"{root}: {counts.published} artifacts imported, {counts.present} present; bundle {bundle.digest}")
    except (BundleDamaged, BundleIncompatible, ImportFailed, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
