"""What `shift` computes."""

import numpy as np


def shift(x: np.ndarray) -> np.ndarray:
    """``x + 1.5`` in float64."""
    return x.astype(np.float64) + 1.5


def wrong(x: np.ndarray) -> np.ndarray:
    """Something else, to see a test fail."""
    return x.astype(np.float64) + 1.25
