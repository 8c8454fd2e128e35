"""`python -m pypto.toolchain`: install, show and lock the tools; the commands that Bazel's repository rules use."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.toolchain.cann import HOME_VARIABLE, cann_folder
from pypto.toolchain.descriptor import ALL_ROOTS, BINDINGS_FILE, ROOTS, Toolchain, describe
from pypto.toolchain.errors import ToolchainError
from pypto.toolchain.fetch import FILES_VARIABLE, files_folder
from pypto.toolchain.install import check, fetch_and_unpack, install
from pypto.toolchain.lock import LOCKED, PACKAGED_LOCK, load_lock, prefix_name
from pypto.toolchain.measured import measured
from pypto.toolchain.progress import megabytes, say
from pypto.toolchain.relock import make_lock
from pypto.toolchain.selection import ENVIRONMENT_VARIABLE, cache_folder, current, descriptor_path

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_DESCRIPTION = """\
The tools that build kernels.

Building a kernel needs three tool sets: gcc (the compiler, its libraries and headers), isa (the PTO-ISA headers and
simulator) and ptoas (the assembler). Every file of them is pinned by name, version and SHA-256 in the lock file.

  python -m pypto.toolchain install       fetch them once, through your own pip and apt; no root needed
  python -m pypto.toolchain install --cann DIR --set gcc_aarch64
                                          for execution_mode='device' as well: the CANN toolkit that you installed,
                                          and a compiler for the NPU's own processors
  python -m pypto.toolchain show          what is in force, and where it lies
  python -m pypto.toolchain show --check  read every file again and compare it with what was installed

"""

_EPILOG = f"""\
exit status: 0 done; 1 the command failed, for the reason on standard error; 2 `show --check` found changed files, or
the command line is wrong; 130 interrupted, run it again to go on.

environment:
  {ENVIRONMENT_VARIABLE}   descriptor file to use in place of the installed tools
  {FILES_VARIABLE}        folder of files already downloaded, for machines without network
  PYPTO_DEBIAN_MIRROR          Debian archive to use in place of the one apt is configured for
  {HOME_VARIABLE}             the CANN toolkit that `install --cann` without a folder takes
  XDG_CACHE_HOME               the tools are installed below it (default ~/.cache)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (0 fine, 1 an error was printed, 2 a check found differences)."""
    parser = _parser()
    options = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except ToolchainError as error:
        print(f"pypto: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pypto: interrupted; run the command again to go on", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pypto.toolchain",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in (_add_install, _add_show, _add_lock, _add_fetch_set, _add_describe):
        add(commands)
    return parser


def _add_command(
    commands: _Commands, name: str, run: Callable[[argparse.Namespace], int], text: str, description: str, example: str
) -> argparse.ArgumentParser:
    ask = commands.add_parser(
        name,
        help=text,
        description=description,
        epilog=f"example:\n  python -m pypto.toolchain {name} {example}\n\n{_EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ask.set_defaults(run=run)
    return ask


def _add_install(commands: _Commands) -> None:
    ask = _add_command(
        commands,
        "install",
        _install,
        "fetch all tool sets and make them the default toolchain",
        "Fetches every tool set of the lock, unpacks it, and prints the descriptor. What is there already stays; an\n"
        "interrupted installation is completed. Kernels find the tools by themselves afterwards.",
        "--files /media/usb/packages",
    )
    ask.add_argument(
        "--prefix", type=Path, metavar="DIR", help="folder to install into (default: below the user's cache folder)"
    )
    ask.add_argument("--force", action="store_true", help="fetch and unpack again what is already there")
    ask.add_argument(
        "--set",
        action="append",
        default=[],
        choices=[name for name in LOCKED if name not in ROOTS],
        help="also fetch this tool set, which only builds for a device use",
    )
    ask.add_argument(
        "--cann",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="DIR",
        help=f"build for devices with this CANN toolkit (default: {HOME_VARIABLE})",
    )
    _add_sources(ask)


def _add_show(commands: _Commands) -> None:
    ask = _add_command(
        commands,
        "show",
        _show,
        "print the toolchain in force",
        "Prints where the descriptor and the bindings lie, and of each tool set the version, size and digest.",
        "--check",
    )
    ask.add_argument("--json", action="store_true", help="print one JSON object")
    ask.add_argument(
        "--check", action="store_true", help="compare every file with the descriptor; status 2 if not equal"
    )


def _add_lock(commands: _Commands) -> None:
    ask = _add_command(
        commands,
        "lock",
        _lock,
        "move the lock to what the package index and the Debian archive carry now",
        "Resolves every tool set anew and rewrites the lock. Debian packages move to the suite's newest version;\n"
        "wheels stay at their version unless you name another one.",
        "--out new-lock.json",
    )
    ask.add_argument(
        "--out", type=Path, metavar="FILE", default=PACKAGED_LOCK, help="file to write (default: the packaged lock)"
    )
    ask.add_argument("--wheel", action="append", default=[], metavar="NAME==VERSION", help="move a wheel; repeatable")


def _add_fetch_set(commands: _Commands) -> None:
    ask = _add_command(
        commands,
        "fetch-set",
        _fetch_set,
        "fetch and unpack one tool set (for Bazel's repository rules)",
        "Fetches one tool set and unpacks it into a folder; set.json there is its record.",
        "gcc --into external/gcc",
    )
    ask.add_argument("set", choices=LOCKED, help="the tool set")
    ask.add_argument("--into", type=Path, required=True, metavar="DIR", help="existing folder")
    _add_sources(ask)


def _add_describe(commands: _Commands) -> None:
    ask = _add_command(
        commands,
        "describe",
        _describe,
        "write the descriptor of unpacked tool sets (for Bazel's repository rules)",
        "Writes the descriptor of unpacked sets from their records; --bindings says where they lie.",
        "--gcc gcc --isa isa --ptoas ptoas --out toolchain.json --bindings bindings.json",
    )
    for name in ALL_ROOTS:
        needed = name in ROOTS
        text = f"folder of the set {name}" if name != "cann" else "folder of the CANN toolkit"
        ask.add_argument(f"--{name}", type=Path, required=needed, metavar="DIR", help=text)
    ask.add_argument("--out", type=Path, required=True, metavar="FILE", help="descriptor to write")
    ask.add_argument("--bindings", type=Path, metavar="FILE", help="bindings to write as well")
    ask.add_argument(
        "--cache-identity",
        choices=("build", "content"),
        default="build",
        help="content: read every file and record the digest of each set's content",
    )
    ask.add_argument(
        "--cache-strict", choices=("0", "1"), default="0", help="1: the same, for every file of a CANN toolkit as well"
    )


def _add_sources(ask: argparse.ArgumentParser) -> None:
    ask.add_argument("--lock", type=Path, metavar="FILE", help="lock file (default: the packaged one)")
    ask.add_argument(
        "--files", type=Path, metavar="DIR", help=f"folder of files already downloaded (or {FILES_VARIABLE})"
    )


def _install(options: argparse.Namespace) -> int:
    lock = load_lock(options.lock)
    prefix = options.prefix or cache_folder() / "pypto" / "toolchains" / prefix_name(lock)
    cann = None
    if options.cann is not None:
        cann = cann_folder(options.cann if options.cann != Path() else None)
    toolchain = install(lock, prefix, files_folder(options.files), optional=options.set, cann=cann, force=options.force)
    path = Path(os.path.abspath(prefix)) / "descriptor.json"
    say(f"toolchain {toolchain.descriptor.digest[:16]} is installed in {path.parent}")
    if options.prefix or options.lock:
        say(f"to use it: {ENVIRONMENT_VARIABLE}={path}")
    print(path)
    return 0


def _show(options: argparse.Namespace) -> int:
    toolchain = current()
    changed = check(toolchain) if options.check else []
    if options.json:
        value = {
            "descriptor_file": str(descriptor_path()),
            "digest": toolchain.descriptor.digest,
            "descriptor": toolchain.descriptor.record(),
            "roots": {name: str(path) for name, path in toolchain.bindings.roots.items()},
        }
        if options.check:
            value["changed"] = changed
        print(json.dumps(value, indent=2, sort_keys=True))
    else:
        _print(toolchain)
    for name in changed:
        print(f"pypto: the files of {name} differ from the descriptor: {toolchain.root(name)}", file=sys.stderr)
    return 2 if changed else 0


def _print(toolchain: Toolchain) -> None:
    print(f"descriptor  {descriptor_path()}")
    print(f"bindings    {descriptor_path().parent / BINDINGS_FILE}")
    print(f"digest      {toolchain.descriptor.digest}")
    for name, tools in sorted(toolchain.descriptor.sets.items()):
        print(f"\n{name} {tools.version}: {tools.files} files, {megabytes(tools.size)}")
        print(f"  folder    {toolchain.root(name)}")
        print(f"  tree      {tools.tree}")
        if tools.lock is not None:
            print(f"  lock      {tools.lock}")
        for tool, file in sorted(tools.tools.items()):
            print(f"  {tool:<9} {file.path}, Build-ID {file.build_id or '-'}")


def _lock(options: argparse.Namespace) -> int:
    versions = {}
    for text in options.wheel:
        name, separator, version = text.partition("==")
        if not (name and separator and version):
            raise ToolchainError(f"--wheel {text!r}: give NAME==VERSION")
        versions[name] = version
    lock = make_lock(versions)
    try:
        options.out.write_bytes(lock.to_bytes())
    except OSError as error:
        raise ToolchainError(f"cannot write {options.out}: {error.strerror}; name a file with --out") from None
    total = megabytes(sum(locked.size for locked in lock))
    say(f"{options.out}: {sum(len(locked.files) for locked in lock)} files, {total}")
    return 0


def _fetch_set(options: argparse.Namespace) -> int:
    if not options.into.is_dir():
        raise ToolchainError(f"--into names no folder: {options.into}")
    fetch_and_unpack(load_lock(options.lock).sets[options.set], options.into.absolute(), files_folder(options.files))
    return 0


def _describe(options: argparse.Namespace) -> int:
    folders = {name: getattr(options, name) for name in ALL_ROOTS}
    toolchain = describe({name: folder for name, folder in folders.items() if folder is not None})
    try:
        strict = options.cache_strict == "1"
        read_all = strict or options.cache_identity == "content"
        descriptor = measured(toolchain, strict=strict) if read_all else toolchain.descriptor
        options.out.write_bytes(descriptor.to_bytes())
        if options.bindings is not None:
            options.bindings.write_bytes(toolchain.bindings.to_bytes(options.bindings.parent))
    except OSError as error:
        raise ToolchainError(f"cannot write {error.filename}: {error.strerror}") from None
    return 0
