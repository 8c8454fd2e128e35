"""Softmax of rows."""

import numpy as np


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax along the last axis of ``x [rows, columns]``; float64."""
    x64 = x.astype(np.float64)
    weights = np.exp(x64 - x64.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
