"""The gate of a mixture of experts."""

import numpy as np

TOP_K = 4


def moe_gate(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights and numbers of the experts with the largest probabilities for each row of ``x``; float64 and int32."""
    logits = x.astype(np.float64) @ w.astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    experts = np.argsort(-odds, axis=1, kind="stable")[:, :TOP_K]
    chosen = np.take_along_axis(odds, experts, axis=1)
    return chosen / chosen.sum(axis=1, keepdims=True), experts.astype(np.int32)
