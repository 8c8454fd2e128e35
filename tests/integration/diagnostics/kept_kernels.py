"""What the tests know of the kernel whose files they look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from diagnosed_kernels import C, R

from pypto.runtime.compiled import CompiledKernel


@dataclass(frozen=True)
class Kept:
    """The output directory of the kernel, the kernel, and the folder of its run."""

    folder: Path
    compiled: CompiledKernel
    run: Path


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Input, expected output for the factor 3, and an empty output."""
    x = np.random.default_rng(5).standard_normal((R, C)).astype(np.float32)
    return x, x * np.float32(3) + x * x, np.zeros_like(x)
