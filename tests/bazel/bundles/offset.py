"""A constant that a kernel takes from a library."""

OFFSET = 1.5
