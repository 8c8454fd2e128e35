"""A kernel means what Python would do with its body: IR that is interpreted against the body that Python runs."""

from __future__ import annotations

import pytest
from kernel_texts import in_incore, in_scope
from meaning import compare
from random_kernels import body

SEEDS = range(250)


def test_random_kernels_mean_what_python_does() -> None:
    compiled = 0
    for seed in SEEDS:
        text = (in_incore if seed % 2 else in_scope)(body(seed))
        try:
            compiled += compare(text, n=(5, 0, 2)[seed % 3])
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}\n{text}")
    # The comparison is worth nothing if most bodies are refused.
    assert compiled > len(SEEDS) // 2
