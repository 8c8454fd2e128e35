"""Root-mean-square normalisation of rows."""

import numpy as np


def rmsnorm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """``x / sqrt(mean(x^2) + eps) * weight`` for each row of ``x [rows, size]``, ``weight [1, size]``; float64."""
    x64 = x.astype(np.float64)
    mean_square = np.mean(x64 * x64, axis=1, keepdims=True)
    return x64 / np.sqrt(mean_square + eps) * weight.astype(np.float64)
