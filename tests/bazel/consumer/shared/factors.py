"""A constant that a kernel of another package captures."""

GAIN = 2.5
