"""Python's own syntax for what is known while compiling: tuples, strings, dictionaries, constants of classes."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from kernel_texts import in_entry, in_incore, in_scope, lowered, module, unmarked

from pypto.ir.reference.interpreter import run
from pypto.language.errors import CompileError, KernelNameError
from pypto.language.source import collect
from pypto.language.watch import SourceWatch

CONSTANTS = """
import collections, dataclasses, enum, sys, types
sys.modules.setdefault(__name__, types.ModuleType(__name__))  # data classes look for it
import numpy as np
class Color(enum.Enum):
    RED = 2
class Level(enum.IntEnum):
    TWO = 2
@dataclasses.dataclass
class Config:
    rows: int = 64
    scale: float = 2.0
    shape: tuple = (64, 64)
    dtype: object = pl.FP32
class Sizes:
    N = 64
    NESTED = Config
config, space = Config(), types.SimpleNamespace(two=2.0)
SCALE, ROWS, YES = np.float32(2.0), np.int64(64), np.bool_(True)
POINT = collections.namedtuple("Point", "two")(2.0)
SHAPE, LIST = (64, 64), [1, 2, 3]
TABLE = {"rows": 64, "scales": (1.0, 2.0), 3: {"deep": 2.0}}
"""
LOAD = "t = pl.load(a, [0, 0], [64, 64])\n"


def factor(body: str) -> float:
    """By what a body that ends with a tile ``t`` multiplies ``a``, which it loads as ``t`` first."""
    rng = np.random.default_rng(1)
    given = {name: rng.integers(1, 9, (64, 64)) / 8.0 for name in "abh"}
    out = np.full((64, 64), np.nan)
    program = lowered(CONSTANTS + in_scope(f"{LOAD}{body}\npl.store(t, [0, 0], out)"))
    run(program, {**given, "n": 4, "x": 0.5, "out": out})
    factors = np.unique(out / given["a"])
    assert len(factors) == 1
    return float(factors[0])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("t = t * SCALE", 2), ("t = pl.load(a, [0, 0], [ROWS, ROWS])", 1), ("if YES:\n    t = t * 2.0", 2),
        ("t = pl.load(a, [0, 0], [config.rows, config.shape[1]]) * config.scale", 2),
        ("t = t * pl.const(space.two, config.dtype)", 2), ("t = pl.load(a, [0, 0], [Sizes.N, 64])", 1),
        ("t = t * Sizes.NESTED.scale", 2), ("t = t * float(Color.RED.value)", 2), ("t = t * float(Level.TWO)", 2),
        ("if Color.RED.name == 'RED':\n    t = t * 2.0", 2),
        ("t = t * TABLE['scales'][1] * TABLE[3]['deep']", 4),
        ("if 'rows' in TABLE and 5 not in TABLE:\n    t *= 3.0", 3),
        ("k = None\nif not k and SHAPE:\n    t *= 2.0", 2),
        ("if '':\n    t = t * 2.0\nt = t * 2.0 if TABLE else t", 2),
        ("if a.shape == SHAPE != (64, 65):\n    t *= 2.0", 2),
        ("t = t * float(max(LIST) * min((2, 3)))", 6), ("t = t * POINT.two", 2),
        ("t = t * float(len(TABLE) + len('ab'))", 5), ("d = {'t': t * 2.0, 1: 3.0}\nt = d['t'] * d[1]", 6),
        ("t = pl.load(a, [0, 0], (1, 2, 64, 64)[2:])", 1), ("t = pl.load(a, [0, 0], [64] + [64])", 1),
        ("t = pl.load(a, [0, 0], [64] * 2)", 1), ("t = pl.load(a, *([0, 0], [64, 64]))", 1),
        ("first, *rest = (2.0, 3.0, 4.0)\nt = t * rest[1]", 4), ("*rest, last = (2.0, 3.0)\nt = t * last * rest[0]", 6),
        ("for k, s in enumerate(LIST):\n    t = t * float(s + k)", 15),
        ("for k, s in zip(LIST, reversed(LIST)):\n    t = t * float(s * k)", 36), ("t = t * float(sum(LIST))", 6),
        ("q, r = divmod(7, 3)\nt = t * float(q)", 2), ("k = None\nif k is None:\n    t = t * 2.0", 2),
        ("if t is not None and pl.FP32 is pl.FP32 and 64 in SHAPE:\n    t = t * 2.0", 2),
        ("if 'a' + 'b' == f'{\"ab\"}':\n    t = t * 2.0", 2),
        ("if f'{2:03}{LIST}{pl.FP32}' == '002(1, 2, 3)FP32':\n    t *= 2.0", 2),
        ("if str(64) == '64' and f'{\"x\"!r}' == \"'x'\":\n    t = t * 2.0", 2),
        ("u: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec]\nu: pl.Tile[[64, 64], pl.FP32] = t * 2.0\nt = u", 2),
        ("u: pl.Tensor[[64], pl.FP32] = pl.col_max(t)\nm: pl.Tile[[64, 64], pl.BOOL] = t > 9.0\nt = t * 2.0", 2),
        ("u = t\ndel u\nassert SHAPE[0] == 64, 'rows'\nu = t * 2.0\nt = u", 2),
    ],
)  # fmt: skip
def test_what_is_known_while_compiling(body: str, expected: float) -> None:
    assert factor(body) == expected


def test_the_operator_of_products() -> None:
    h = np.random.default_rng(1).integers(-8, 9, (64, 64)) / 8.0
    out = np.zeros((64, 64))
    program = lowered(in_scope("out[:] = h @ h"))
    run(program, {"a": h, "b": h, "h": h, "n": 1, "x": 1.0, "out": out})
    np.testing.assert_array_equal(out, h @ h)


def test_the_name_of_a_scope_may_be_computed() -> None:
    text = f"{CONSTANTS}@entry\ndef main(a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):\n"
    text += "    with pl.at(level=pl.Level.CORE_GROUP, name_hint=f'part_{SHAPE[0]}'):\n        out[:] = a * 2.0\n"
    assert "part_64" in lowered(text + "    return out\n").functions


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("⟦assert n > 0⟧", "assert is about what is known while compiling, not a run-time scalar of BOOL"),
        ("⟦assert 1 > 2, f'{n} rows'⟧", "assert 1 > 2 does not hold: a run-time scalar of INT64 rows"),
        ("u = 1.0\ndel u\nt = ⟦u⟧", "u was deleted"), ("del ⟦a[0]⟧", "only names can be deleted"),
        ("k = ⟦TABLE['row']⟧", "the dictionary has no 'row'; it has 'rows', 'scales', 3"),
        ("t: ⟦pl.Tile[[64, 32], pl.FP32]⟧ = pl.load(a, [0, 0], [64, 64])", "but is a tile [64, 64] of FP32"),
        ("t: ⟦pl.Tile[[64, 64], pl.FP16]⟧ = pl.load(a, [0, 0], [64, 64])", "is annotated as pl.Tile[[64, 64], pl."),
        ("⟦u, v = SHAPE + (1,)⟧", "2 names for 3 values"), ("⟦u, v, w, *r = SHAPE⟧", "4 names for 2 values"),
        ("t = pl.load(a, ⟦*x⟧)", "* in front of an argument takes a tuple"), ("k = ⟦a is b⟧", "the comparison Is"),
        ("k = {⟦n⟧: 1}", "a key of a dictionary must be known"), ("k = {'a': 1, **⟦x⟧}", "write its items out"),
        ("k = ⟦f'{TABLE:q}'⟧", "cannot be written as 'q'"),
    ],
)  # fmt: skip
def test_mistakes_with_what_is_known(body: str, message: str) -> None:
    marked = unmarked(CONSTANTS + in_scope(body))
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (marked.line, marked.column)


def test_members_of_enumerations_of_others_are_named_by_their_value() -> None:
    with pytest.raises(KernelNameError, match=r"cannot enter a kernel.*; use Color\.RED\.value"):
        lowered(CONSTANTS + in_scope("k = Color.RED"))


def test_what_constants_stand_for_is_part_of_the_source_and_watched() -> None:
    text = CONSTANTS + in_scope("out[:] = a * (config.scale + TABLE['scales'][1] + float(Sizes.N) + space.two)")
    names = module(text)
    closure = collect(names["main"])
    record = copy.deepcopy(closure.record())
    watch = SourceWatch.of(closure)
    assert watch is not None and watch.unchanged()

    def change(how: str) -> None:
        nonlocal record
        exec(how, names)
        assert not watch.unchanged(), how
        again = collect(names["main"]).record()
        assert again != record, how
        record = again

    change("config.scale = 3.0")
    change("TABLE['scales'] = (1.0, 5.0)")
    change("Sizes.N = 65")
    change("space.two = 4.0")


KERNELS = """
@incore
def scaled(a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]], s: float = 2.0):
    out = pl.store(pl.load(a, [0, 0], [64, 64]) * s, [0, 0], out)
    return out

@inline
def doubled(t):
    return t * 2.0

KERNELS, BY_NAME = (scaled,), {"scaled": scaled, "more": [doubled]}
"""


@pytest.mark.parametrize(
    "body",
    [
        "args = (a, out)\nout = scaled(*args)",
        "out = scaled(*(a, out), s=2.0)",
        "for kernel in KERNELS:\n    out = kernel(a, out)",
        "out = BY_NAME['scaled'](a, out)",
        "out, _ = pl.submit(scaled, a, out, dumps=[a])",
        "pl.dump_tag(a)\npl.tensor.dump_tag(out)\nwith pl.at(level=pl.Level.CORE_GROUP, dumps=[a]):\n"
        "    out[:] = BY_NAME['more'][0](pl.load(a, [0, 0], [64, 64]))",
    ],
)
def test_kernels_in_tuples_and_dictionaries_and_their_arguments(body: str) -> None:
    a, out = np.random.default_rng(1).integers(-8, 9, (64, 64)) / 8.0, np.zeros((64, 64))
    program = lowered(KERNELS + in_entry(f"{body}\nreturn out"))
    run(program, {"a": a, "b": a, "h": a, "n": 1, "x": 1.0, "out": out})
    np.testing.assert_array_equal(out, a * 2)


def test_attributes_of_a_function_come_first_and_change_nothing() -> None:
    attributes = "pl.func_attr({'split': pl.SplitMode.UP_DOWN, 'stationary': a})\npl.func_attr({'split_aiv': True})\n"
    with_them, without = (lowered(in_incore(f"'doc'\n{text}out[:] = a")) for text in (attributes, ""))
    assert [op.name for op in with_them.functions["part"].body.walk()] == [
        op.name for op in without.functions["part"].body.walk()
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pl.func_attr(⟦{'speed': 1}⟧)", "there is no attribute 'speed'; known are split, split_aiv, stationary"),
        ("pl.func_attr(⟦{'split': 1}⟧)", "split must be one of pl.SplitMode, not the number 1"),
        ("pl.func_attr(⟦a⟧)", "attrs must be a dictionary, not a tensor"),
        ("pl.func_attr({'split_aiv': True})\npl.func_attr(⟦{'split_aiv': True}⟧)", "split_aiv is given twice"),
        ("k = 1\n⟦pl.func_attr({'split_aiv': True})⟧", "stands in front of all other statements"),
    ],
)
def test_mistakes_with_attributes(body: str, message: str) -> None:
    marked = unmarked(in_incore(f"{body}\nout[:] = a"))
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (marked.line, marked.column)
