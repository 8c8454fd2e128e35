"""The parser of ``python -m pypto.jit`` and its dispatch."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pypto.jit.cli.errors import CommandError, InputError
from pypto.jit.cli.output import print_anything

_OVERVIEW = """\
Fill, look at and clean the persistent cache of compiled kernels.

  python -m pypto.jit warm    --module my_kernels --config warmup.json   build what a list of kernels needs
  python -m pypto.jit explain --module my_kernels --config warmup.json   would it hit? if not: which field differs
  python -m pypto.jit stat    [--root kernel-cache]                      what is in a cache
  python -m pypto.jit verify  [--root kernel-cache]                      read and hash every byte of it
  python -m pypto.jit prune   --root kernel-cache --older-than 30d       remove entries, with all users stopped
"""

_EXIT = """\
exit status: 0 done, and nothing was found wrong; 1 the command found or met a problem (a kernel failed, a request would
miss, an entry is invalid, a lock is held); 2 the command line, the environment or the warmup file is wrong, and nothing
was done; 130 interrupted.
"""

_EPILOG = f"""\
{_EXIT}
Without --root, stat and verify look at the configured cache: PYPTO_CACHE_DIR, else ~/.cache/pypto/jit.

environment, where no config says otherwise: PYPTO_CACHE=1 turns the cache on, PYPTO_CACHE_DIR names its root,
PYPTO_CACHE_READONLY=1 forbids writing to it, PYPTO_CACHE_EPOCH and PYPTO_CACHE_IDENTITY are part of every key.
"""

_WARMUP_FILE = """\
A warmup file is JSON; its paths are relative to its own folder:

  {
    "schema_version": 1,
    "cache": {"enabled": true, "root": "kernel-cache"},
    "requests": [
      {
        "kernel": "decode",
        "run_config": {"platform": "a2a3sim"},
        "tensors": {"x": {"shape": [1, 128], "dtype": "FP16"}},
        "scalars": {"block_size": 128}
      }
    ]
  }

cache       the fields of pypto.CacheConfig; without it, the environment decides
kernel      a @pl.jit function of the module, by its name there
run_config  platform, or backend_type and execution_mode; runtime, strategy, memory_planner, dump_passes,
            dump_ptoas_passes, save_kernels, save_kernels_dir, distributed_config; enumerations by their names
tensors     shape and dtype (FP16 BF16 FP32 INT8 INT16 INT32 INT64 BOOL) of parameters whose annotation lacks them
scalars     values of scalar parameters: needed with tensors, since arguments are bound by position; any value will do
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    print_anything()
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except InputError as error:
        print(f"pypto: error: {error}", file=sys.stderr)
        return 2
    except CommandError as error:
        print(f"pypto: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing more may be written when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("pypto: interrupted; what was published stays, run the command again to go on", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m pypto.jit", description=_OVERVIEW, epilog=_EPILOG, formatter_class=raw
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, text: str, description: str, example: str) -> argparse.ArgumentParser:
        epilog = f"example:\n  python -m pypto.jit {name} {example}\n\n{_EXIT}"
        return commands.add_parser(name, help=text, description=description, epilog=epilog, formatter_class=raw)

    ask = command(
        "warm",
        "build everything that a list of kernels needs",
        "Build the binaries of every kernel in a warmup file and publish them. Starts no device, runs no kernel.\n"
        "The whole file is checked before anything is built. A kernel that fails does not stop the others.\n"
        "The module is imported, so it must be trusted. RESULT is shared (other processes find it), private (only\n"
        "this process had it: REASON says why), bundle, or failed.\n\n" + _WARMUP_FILE,
        "--module my_kernels --config warmup.json",
    )
    _add_requests(ask, required=True)
    ask.set_defaults(run=_warm)

    ask = command(
        "explain",
        "say whether requests would hit and, if not, which fields differ",
        "With --module and --config: look each request of a warmup file up, build nothing, write nothing.\n"
        "A miss names the stored key that is nearest and every field in which the two differ, as\n"
        "`field: stored value -> value now`. With two keys of a cache (or their beginnings): how those differ.\n"
        "Status 1 when a request would not hit, or the two keys differ.",
        "--module my_kernels --config warmup.json",
    )
    _add_requests(ask, required=False)
    _add_root_option(ask, "cache that holds the two keys")
    ask.add_argument("keys", nargs="*", metavar="KEY", help="two keys; `stat --entries` lists them")
    ask.set_defaults(run=_explain, parser=ask)

    ask = command(
        "stat",
        "print what a cache holds",
        "Reads manifests only: imports nothing, takes no lock, writes and repairs nothing. A root that does not exist\n"
        "is empty.",
        "--root kernel-cache --entries",
    )
    _add_root(ask)
    ask.add_argument("--entries", action="store_true", help="list every entry")
    ask.set_defaults(run=_stat)

    ask = command(
        "verify",
        "read and hash every byte of a cache",
        "Compares every entry with its manifest; status 1 if one is damaged. Changes nothing.",
        "--root kernel-cache",
    )
    _add_root(ask)
    ask.set_defaults(run=_verify)

    ask = command(
        "prune",
        "remove entries of a cache that no process uses",
        "Removes every entry that one of the criteria names, in one go. Only for a cache that no process uses: stop\n"
        "them first. A process in the middle of a build holds a lock, and then nothing is removed; a process that\n"
        "only loaded kernels holds none.",
        "--root kernel-cache --older-than 30d --max-bytes 2G --dry-run",
    )
    _add_root(ask, required=True)
    ask.add_argument("--older-than", type=_age, metavar="AGE", help="published longer ago, such as 12h, 30d or 8w")
    ask.add_argument("--max-bytes", type=_size, metavar="SIZE", help="oldest first, until the rest fits; such as 2G")
    ask.add_argument(
        "--environment",
        action="append",
        default=[],
        type=_digest_prefix,
        metavar="DIGEST",
        help="entries made with these tools; the digest as `stat` prints it, repeatable",
    )
    ask.add_argument("--invalid", action="store_true", help="damaged entries and what dead processes left over")
    ask.add_argument("--remove-locks", action="store_true", help="lock files of keys that have no entry left, as well")
    ask.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    ask.set_defaults(run=_prune)
    return parser


def _add_requests(ask: argparse.ArgumentParser, *, required: bool) -> None:
    ask.add_argument("--module", required=required, help="module of the kernels; the working directory is searched too")
    ask.add_argument("--config", type=Path, required=required, metavar="FILE", help="warmup file (see warm --help)")
    ask.add_argument("--json", action="store_true", help="print one JSON document")


def _add_root(ask: argparse.ArgumentParser, *, required: bool = False) -> None:
    _add_root_option(ask, "cache root", required=required)
    ask.add_argument("--json", action="store_true", help="print one JSON document")


def _add_root_option(ask: argparse.ArgumentParser, what: str, *, required: bool = False) -> None:
    default = "" if required else " (default: PYPTO_CACHE_DIR, else ~/.cache/pypto/jit)"
    ask.add_argument("--root", type=Path, required=required, metavar="DIR", help=f"{what}{default}")


_AGES = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def _age(text: str) -> float:
    match = re.fullmatch(r"(\d+)([smhdw])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a number and one of s, m, h, d, w, such as 30d; got {text!r}")
    return int(match[1]) * _AGES[match[2]]


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMGT]?)B?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a number of bytes, or with K, M, G, T, such as 2G; got {text!r}")
    return int(match[1]) * _SIZES[match[2]]


def _digest_prefix(text: str) -> str:
    if re.fullmatch(r"[0-9a-f]{8,64}", text) is None:
        raise argparse.ArgumentTypeError(f"expected at least 8 digits of an environment's digest, got {text!r}")
    return text


def _warm(options: argparse.Namespace) -> int:
    from pypto.jit.cli.warm import warm

    return warm(options.module, options.config, as_json=options.json)


def _explain(options: argparse.Namespace) -> int:
    from pypto.jit.cli.explain import explain_keys, explain_requests

    if options.module is not None and options.config is not None and options.root is None and not options.keys:
        return explain_requests(options.module, options.config, as_json=options.json)
    if options.module is None and options.config is None and len(options.keys) == 2:
        return explain_keys(_root(options), *options.keys, as_json=options.json)
    options.parser.error("give --module and --config, or two keys (of the cache --root)")
    raise AssertionError("unreachable")


def _root(options: argparse.Namespace) -> Path:
    if options.root is not None:
        root: Path = options.root
        return root
    from pypto.jit.config import capture_policy

    try:
        return capture_policy().root
    except ValueError as error:
        raise InputError(str(error)) from None


def _stat(options: argparse.Namespace) -> int:
    from pypto.jit.cli.inspect_root import stat

    return stat(_root(options), entries=options.entries, as_json=options.json)


def _verify(options: argparse.Namespace) -> int:
    from pypto.jit.cli.inspect_root import verify

    return verify(_root(options), as_json=options.json)


def _prune(options: argparse.Namespace) -> int:
    from pypto.jit.cli.prune import Selection, prune

    selection = Selection(options.older_than, options.max_bytes, tuple(options.environment), options.invalid)
    return prune(
        options.root,
        selection,
        dry_run=options.dry_run,
        remove_locks=options.remove_locks,
        as_json=options.json,
    )
