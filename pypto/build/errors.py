"""Errors of the build steps."""

from __future__ import annotations


class BuildError(Exception):
    """A build step was asked for something it cannot do; the message names the input and the remedy."""


class OnChipOverflow(BuildError):
    """The assembler found no place for a kernel's tiles; the message names the memory, what is needed and the tiles."""


class SampleError(TypeError):
    """A sample or argument is missing or does not fit what the kernel's annotations say."""
