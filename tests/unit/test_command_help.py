"""Every command explains itself: what it does, an example that its own parser takes, and what its exit status means."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from collections.abc import Iterator

import pytest

PARSERS = {
    "build": "pypto.build.cli:make_parser",
    "bundle": "pypto.bundle.cli:_parser",
    "diagnostics": "pypto.diagnostics.cli:_parser",
    "jit": "pypto.jit.cli.command:_parser",
    "toolchain": "pypto.toolchain.cli:_parser",
}


def parser_of(package: str) -> argparse.ArgumentParser:
    module, name = PARSERS[package].split(":")
    parser = getattr(importlib.import_module(module), name)()
    assert isinstance(parser, argparse.ArgumentParser)
    return parser


def subcommands() -> Iterator[tuple[str, str]]:
    for package in PARSERS:
        (choices,) = (a.choices for a in parser_of(package)._actions if isinstance(a, argparse._SubParsersAction))
        yield from ((package, name) for name in choices)


def help_of(*command: str) -> str:
    parser = parser_of(command[0])
    if len(command) == 1:
        return parser.format_help()
    (action,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    text = action.choices[command[1]].format_help()
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("package", PARSERS)
def test_a_package_shows_its_commands(package: str) -> None:
    text = help_of(package)
    assert text.count(f"\n  python -m pypto.{package} ") >= 3
    assert "\nexit status: 0 " in text


@pytest.mark.parametrize(("package", "command"), list(subcommands()), ids=str)
def test_a_command_explains_itself(package: str, command: str) -> None:
    text = help_of(package, command)
    assert "\nexit status: 0 " in text
    assert max(map(len, text.splitlines())) <= 120
    example = re.search(r"\nexample:\n  (python -m pypto\..*(?:\\\n.*)*)\n\n", text)
    assert example is not None, text
    program, *arguments = shlex.split(example[1].replace("\\\n", " "), comments=False)[2:]
    assert program == f"pypto.{package}"
    parser_of(package).parse_args(arguments)  # ends the process if its own example is wrong
    assert arguments[0] == command


@pytest.mark.parametrize(("package", "command"), list(subcommands()), ids=str)
def test_every_argument_is_explained(package: str, command: str) -> None:
    (action,) = (a for a in parser_of(package)._actions if isinstance(a, argparse._SubParsersAction))
    silent = [a.dest for a in action.choices[command]._actions if not a.help]
    assert silent == []
