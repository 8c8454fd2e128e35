"""Commands of ``python -m pypto.jit``."""
