"""Causal grouped-query attention over a whole prompt."""

import numpy as np


def prefill(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention of ``q [heads, T, size]`` over ``k`` and ``v [kv_heads, T, size]`` up to each row; float64."""
    group = q.shape[0] // k.shape[0]
    k64, v64 = (np.repeat(a.astype(np.float64), group, axis=0) for a in (k, v))
    scores = q.astype(np.float64) @ k64.transpose(0, 2, 1) / np.sqrt(q.shape[2])
    scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True) @ v64
