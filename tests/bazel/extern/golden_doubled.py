"""What `doubled` computes."""

import numpy as np


def doubled(x: np.ndarray, n: int) -> np.ndarray:
    """``2 * (x + n / 2)`` in float64."""
    return 2 * (x.astype(np.float64) + n / 2)
