"""Errors of the commands."""

from __future__ import annotations


class CommandError(Exception):
    """The command cannot do what it was asked for; the message says why and what to do."""


class WarmupFileError(CommandError):
    """A warmup file is wrong; the message names the file, the place in it and what is expected."""
