"""A linear layer with its inner dimension divided among ranks."""

import numpy as np


def tensor_parallel(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``x [ranks, m, k]``, ``w [ranks, k, n]``: the same ``[m, n]`` for every rank; float64."""
    sums = np.einsum("rmk,rkn->mn", x.astype(np.float64), w.astype(np.float64))
    return np.broadcast_to(np.maximum(sums, 0.0), (x.shape[0], *sums.shape))
