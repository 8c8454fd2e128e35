"""Errors of opening and using bundles."""

from __future__ import annotations


class BundleDamaged(Exception):
    """A file of a bundle is missing, extra or not what the bundle says; the message names it."""


class BundleIncompatible(Exception):
    """An intact bundle that this pypto cannot use, or not the one that was asked for by its digest."""


class UnknownKernel(LookupError):
    """A bundle has no kernel of that name; the message lists those it has."""


class NoMatchingSpecialization(TypeError):
    """No specialization of a kernel, or more than one, takes these arguments; the message lists them all."""
