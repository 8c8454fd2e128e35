"""Set up the private Bazel by hand: `python3 tools/bazel_setup [options]`."""

from __future__ import annotations

import argparse
import os
import sys

if not __package__:  # run as a folder, not with -m: make the package importable under its name
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from bazel_setup import prefix, stamp
from bazel_setup.common import Failure, cache_folder, say

TEXT = """\
Set up Bazel in a private folder from Debian packages, without root and without installing anything.
tools/bazel does this by itself where it finds no other Bazel; this command is for what needs an option.
Prints the path of the Bazel.
"""


def main() -> None:
    ask = argparse.ArgumentParser(
        prog="tools/bazel_setup", description=TEXT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("--prefix", help="the folder (default: the one tools/bazel uses, in your cache folder)")
    ask.add_argument("--suite", help=f"the Debian suite to take it from (default: what is there, else {stamp.SUITE})")
    ask.add_argument("--mirror", metavar="URI", help="a Debian archive (default: PYPTO_DEBIAN_MIRROR, else apt's own)")
    ask.add_argument("--allow-expired", action="store_true", help="accept a signed index past its Valid-Until date")
    ask.add_argument("--any-arch", action="store_true", help="go on on a machine type where this was never tried")
    ask.add_argument("--force", action="store_true", help="set it up again even if it is complete")
    args = ask.parse_args()
    folder = os.path.abspath(args.prefix) if args.prefix else stamp.default_prefix(cache_folder(os.environ))
    prefix.ensure(
        prefix.Options(folder, args.suite, args.mirror, args.allow_expired, args.any_arch, args.force),
    )
    print(os.path.join(folder, "bin", "bazel"))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        say(f"error: {failure}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
