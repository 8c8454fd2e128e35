"""Errors of the commands."""

from __future__ import annotations


class CommandError(Exception):
    """The command cannot do what it was asked for; the message says why and what to do."""


class InputError(CommandError):
    """The command line, the environment or a file is wrong, and nothing was done."""


class WarmupFileError(InputError):
    """A warmup file is wrong; the message names the file, the place in it and what is expected."""
