"""Matrix product."""

import numpy as np


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a [m, k] @ b [k, n]``; float64."""
    return a.astype(np.float64) @ b.astype(np.float64)
