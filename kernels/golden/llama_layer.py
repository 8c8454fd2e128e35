"""One layer of a Llama-style model for one token of each sequence."""

from collections.abc import Mapping

import numpy as np

EPSILON = 1e-6


def _normalize(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * weight


def _rotate(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, heads: int) -> np.ndarray:
    pairs = x.reshape(len(x), heads, 2, -1)
    low, high = pairs[:, :, 0], pairs[:, :, 1]
    c, s = cos[:, None], sin[:, None]
    return np.concatenate([low * c - high * s, high * c + low * s], axis=2)


def llama_layer(
    x: np.ndarray,
    input_norm: np.ndarray,
    wq: np.ndarray,
    wk: np.ndarray,
    wv: np.ndarray,
    cos: np.ndarray,
    sin: np.ndarray,
    positions: np.ndarray,
    k_cache: np.ndarray,
    v_cache: np.ndarray,
    wo: np.ndarray,
    mlp_norm: np.ndarray,
    w_gate: np.ndarray,
    w_up: np.ndarray,
    w_down: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both caches with the new tokens at ``positions``, and the layer's output; float64."""
    wide = [a.astype(np.float64) for a in (input_norm, wq, wk, wv, cos, sin, wo, mlp_norm, w_gate, w_up, w_down)]
    input_norm, wq, wk, wv, cos, sin, wo, mlp_norm, w_gate, w_up, w_down = wide
    keys, values = k_cache.astype(np.float64), v_cache.astype(np.float64)
    batch, kv_heads, _, size = keys.shape
    normal = _normalize(x.astype(np.float64), input_norm)
    q = _rotate(normal @ wq, cos, sin, wq.shape[1] // size)
    rows = np.arange(batch)
    keys[rows, :, positions] = _rotate(normal @ wk, cos, sin, kv_heads)
    values[rows, :, positions] = (normal @ wv).reshape(batch, kv_heads, size)
    attended = np.empty_like(q)
    for b, position in enumerate(positions):
        for head in range(q.shape[1]):
            group = head * kv_heads // q.shape[1]
            scores = keys[b, group, : position + 1] @ q[b, head] / np.sqrt(size)
            weights = np.exp(scores - scores.max())
            attended[b, head] = weights / weights.sum() @ values[b, group, : position + 1]
    middle = x + attended.reshape(batch, -1) @ wo
    mlp = _normalize(middle, mlp_norm)
    gate = mlp @ w_gate
    return keys, values, middle + (gate / (1 + np.exp(-gate)) * (mlp @ w_up)) @ w_down


def inputs(numbers: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Positions inside of the caches, their angles, and weights that keep the numbers' size."""
    batch, half = shapes["cos"]
    capacity = shapes["k_cache"][2]
    positions = numbers.integers(0, capacity, batch)
    positions[:2] = 0, capacity - 1
    angles = positions[:, None] / 10000.0 ** (np.arange(half) / half)
    weights = {name: shape for name, shape in shapes.items() if name.startswith("w")}
    return {
        "positions": positions.astype(np.int32),
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
        **{n: (numbers.standard_normal(s) / np.sqrt(s[0])).astype(np.float16) for n, s in weights.items()},
    }
