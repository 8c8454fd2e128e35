"""Every kernel against NumPy in float64, in the simulator's checked mode, with one artifact for all sizes."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pypto
from pypto.diagnostics import check_precision
from pypto.runtime.config import RunConfig

EPS32 = 2.0**-24
EPS16 = 2.0**-11


def kernel(name: str) -> Any:
    return getattr(importlib.import_module(f"kernels.{name}"), name)


def golden(name: str) -> Any:
    return getattr(importlib.import_module(f"kernels.golden.{name}"), name)


def five_heads() -> ModuleType:
    path = Path(__file__).parent / "five_heads.py"
    spec = importlib.util.spec_from_file_location("five_heads", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(seed: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def untouched(shape: tuple[int, ...]) -> np.ndarray:
    """An output that shows every element a kernel forgot."""
    return np.full(shape, np.nan, np.float32)


@pytest.fixture
def one_build(checked: RunConfig) -> Any:
    """Fails when the calls of a test made more than one build."""
    before = pypto.cache_stats().binary_builds
    yield
    assert pypto.cache_stats().binary_builds - before <= 1


@pytest.mark.usefixtures("one_build")
def test_decode_for_every_length_and_capacity(checked: RunConfig) -> None:
    decode, reference = kernel("decode"), golden("decode")
    for capacity, lengths in ((200, (1, 63, 64, 65, 200)), (1, (1,)), (64, (64,))):
        q = numbers(1, (16, 128), np.float16)
        k = numbers(2, (capacity, 128), np.float16)
        v = numbers(3, (capacity, 128), np.float16)
        for seq_len in lengths:
            out = untouched((16, 128))
            assert decode(q, k, v, seq_len, out, config=checked) is out
            # Weights of the block are rounded to FP16, and they sum to 1.
            tolerance = EPS16 * float(np.abs(v).max())
            assert np.abs(out - reference(q, k, v, seq_len)).max() <= tolerance, (capacity, seq_len)


@pytest.mark.usefixtures("one_build")
def test_decode_with_scores_far_apart(checked: RunConfig) -> None:
    q = numbers(1, (16, 128), np.float16) * np.float16(8)
    k = numbers(2, (130, 128), np.float16)
    v = numbers(3, (130, 128), np.float16)
    out = untouched((16, 128))
    kernel("decode")(q, k, v, 130, out, config=checked)
    assert np.abs(out - golden("decode")(q, k, v, 130)).max() <= EPS16 * float(np.abs(v).max())


@pytest.mark.usefixtures("one_build")
def test_the_precision_check_knows_what_decode_rounds_to() -> None:
    q, k, v = (numbers(seed, (rows, 128), np.float16) for seed, rows in enumerate((16, 200, 200)))
    arguments = (q, k, v, 130, untouched((16, 128)))
    report = check_precision(kernel("decode"), *arguments, config=RunConfig(backend_type="Ascend910B"))
    assert report.ok, str(report)
    (difference,) = report.checks[-1].differences
    # Its weights are FP16, though its output is FP32.
    assert 0 < difference.relative < difference.allowed == 4e-3


@pytest.mark.usefixtures("one_build")
def test_attention_of_five_heads(checked: RunConfig) -> None:
    attend, reference = five_heads().attend, golden("decode")
    for capacity, lengths in ((100, (1, 31, 32, 33, 100)), (7, (7,))):
        q = numbers(4, (5, 64), np.float16)
        k = numbers(5, (capacity, 64), np.float16)
        v = numbers(6, (capacity, 64), np.float16)
        for length in lengths:
            out = untouched((5, 64))
            attend(length, 1 / math.sqrt(64), v, k, q, out, config=checked)
            tolerance = EPS16 * float(np.abs(v).max())
            assert np.abs(out - reference(q, k, v, length)).max() <= tolerance, (capacity, length)


@pytest.mark.usefixtures("one_build")
def test_rmsnorm(checked: RunConfig) -> None:
    from kernels.rmsnorm import EPSILON

    weight = numbers(7, (1, 512), np.float32)
    for rows in (1, 15, 16, 17, 40):
        x = numbers(rows, (rows, 512), np.float16)
        out = untouched((rows, 512))
        kernel("rmsnorm")(x, weight, out, config=checked)
        expected = golden("rmsnorm")(x, weight, EPSILON)
        # A sum of 512 squares, then four roundings.
        assert np.all(np.abs(out - expected) <= 512 * EPS32 * np.abs(expected)), rows


@pytest.mark.usefixtures("one_build")
def test_softmax(checked: RunConfig) -> None:
    for rows in (1, 16, 23):
        x = numbers(rows, (rows, 256), np.float32) * 4
        out = untouched((rows, 256))
        kernel("softmax")(x, out, config=checked)
        expected = golden("softmax")(x)
        # The exponent is rounded once before exp makes a relative error of it; sums of 256 add the rest.
        spread = float(x.max() - x.min())
        assert np.all(np.abs(out - expected) <= (spread + 256) * EPS32 * expected), rows


@pytest.mark.usefixtures("one_build")
def test_matmul(checked: RunConfig) -> None:
    b = numbers(8, (256, 256), np.float16)
    for rows in (1, 64, 65, 130):
        a = numbers(rows, (rows, 256), np.float16)
        out = untouched((rows, 256))
        kernel("matmul")(a, b, out, config=checked)
        bound = 256 * EPS32 * golden("matmul")(np.abs(a), np.abs(b))
        assert np.all(np.abs(out - golden("matmul")(a, b)) <= bound), rows


@pytest.mark.usefixtures("one_build")
def test_add(checked: RunConfig) -> None:
    for rows in (1, 16, 33):
        a, b = numbers(1, (rows, 512), np.float32), numbers(2, (rows, 512), np.float32)
        out = untouched((rows, 512))
        kernel("add")(a, b, out, config=checked)
        expected = golden("add")(a, b)
        assert np.all(np.abs(out - expected) <= EPS32 * np.abs(expected)), rows


@pytest.mark.usefixtures("one_build")
def test_llama_layer(checked: RunConfig) -> None:
    from kernels.golden.llama_layer import inputs

    layer = kernel("llama_layer")
    names = [name for name in inspect.signature(layer).parameters if name != "out"]
    for capacity in (100, 1):
        shapes = {
            **{"x": (16, 256), "input_norm": (1, 256), "mlp_norm": (1, 256), "cos": (16, 32)},
            **{"wq": (256, 256), "wk": (256, 128), "wv": (256, 128), "wo": (256, 256)},
            **{"w_gate": (256, 512), "w_up": (256, 512), "w_down": (512, 256)},
            **{"k_cache": (16, 2, capacity, 64), "v_cache": (16, 2, capacity, 64)},
        }
        given = inputs(np.random.default_rng(9), shapes)
        for seed, name in enumerate(("x", "input_norm", "mlp_norm", "k_cache", "v_cache")):
            given[name] = numbers(seed, shapes[name], np.float16 if "cache" in name else np.float32)
        arguments = [given[name] for name in names]
        wanted = golden("llama_layer")(*[argument.copy() for argument in arguments])
        out = untouched((16, 256))
        layer(*arguments, out, config=checked)
        # Four roundings to FP16 on the way, each of numbers of a few units.
        for got, exact in zip((given["k_cache"], given["v_cache"], out), wanted, strict=True):
            assert np.abs(got - exact).max() <= 4 * EPS16 * np.abs(exact).max(), capacity


@pytest.mark.usefixtures("one_build")
def test_prefill(checked: RunConfig) -> None:
    for tokens in (1, 64, 100):
        q = numbers(1, (4, tokens, 64), np.float16)
        k, v = (numbers(seed, (2, tokens, 64), np.float16) for seed in (2, 3))
        out = untouched((4, tokens, 64))
        kernel("prefill")(q, k, v, out, config=checked)
        assert np.abs(out - golden("prefill")(q, k, v)).max() <= EPS16 * float(np.abs(v).max()), tokens


@pytest.mark.usefixtures("one_build")
def test_moe_gate(checked: RunConfig) -> None:
    w = numbers(2, (256, 64), np.float16)
    for tokens in (1, 40):
        x = numbers(1, (tokens, 256), np.float16)
        weights, experts = untouched((tokens, 4)), np.full((tokens, 4), -1, np.int32)
        kernel("moe_gate")(x, w, weights, experts, config=checked)
        expected, chosen = golden("moe_gate")(x, w)
        assert np.array_equal(experts, chosen), tokens
        # Each logit is a sum of 256 products, rounded; exp makes a relative error of it.
        bound = 256 * EPS32 * float((np.abs(x.astype(float)) @ np.abs(w.astype(float))).max())
        assert np.all(np.abs(weights - expected) <= bound * expected), tokens
