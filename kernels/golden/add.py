"""Element-wise sum."""

import numpy as np


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a + b``; float64."""
    return a.astype(np.float64) + b.astype(np.float64)
