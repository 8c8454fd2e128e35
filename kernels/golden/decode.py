"""Single-token grouped-query attention."""

import numpy as np


def decode(q: np.ndarray, k: np.ndarray, v: np.ndarray, seq_len: int) -> np.ndarray:
    """Attention of ``q [heads, size]`` over the first ``seq_len`` rows of ``k`` and ``v [S, size]``; float64."""
    q64 = q.astype(np.float64)
    k64 = k[:seq_len].astype(np.float64)
    v64 = v[:seq_len].astype(np.float64)
    scores = q64 @ k64.T / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ v64
