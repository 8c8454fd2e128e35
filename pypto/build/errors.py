"""Errors of the build steps."""

from __future__ import annotations


class BuildError(Exception):
    """A build step was asked for something it cannot do; the message names the input and the remedy."""
