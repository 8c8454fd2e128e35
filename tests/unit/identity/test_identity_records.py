"""Typed records and canonical JSON (REC)."""

from __future__ import annotations

import collections
import enum
import hashlib
import itertools
import math
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto._identity import canonical_json, digest_record, encode_record, parse_canonical_json
from pypto._identity import records as records_module


class Colour(enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


Pair = collections.namedtuple("Pair", "a b")

LOOK_ALIKES = [
    None,
    False,
    True,
    0,
    1,
    -1,
    1.0,
    -0.0,
    0.0,
    "",
    "1",
    "N",
    b"",
    b"1",
    [],
    (),
    {},
    [1],
    (1,),
    {"1": 1},
    [[1]],
]
UNSUPPORTED = [
    object(), {1}, frozenset(), Path("a"), Colour.RED, Number.ONE, int, len, 1j, bytearray(b"a"),
    collections.OrderedDict(a=1), Pair(1, 2), range(3),
]  # fmt: skip


def nan(payload: int) -> float:
    return struct.unpack(">d", struct.pack(">Q", 0x7FF8_0000_0000_0000 | payload))[0]


def test_examples_of_the_specification() -> None:
    """REC-05, REC-15, REC-17, REC-18, REC-19."""
    assert digest_record(True) != digest_record(1)
    assert digest_record(False) != digest_record(0)
    assert digest_record(1) != digest_record(1.0)
    assert digest_record(0.0) != digest_record(-0.0)
    assert digest_record({"rows": 32, "cols": 64}) == digest_record({"cols": 64, "rows": 32})
    nested = [{"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}]
    assert digest_record(nested[0]) == digest_record(nested[1])


def test_every_value_carries_its_type() -> None:
    """REC-03, REC-06, REC-07, REC-12 to REC-14, REC-37: look-alikes differ, alone, in lists and in dictionaries."""
    for wrap in (lambda v: v, lambda v: [v], lambda v: (v,), lambda v: {"k": v}, lambda v: [v, v]):
        encodings = [encode_record(wrap(value)) for value in LOOK_ALIKES]
        assert len(set(encodings)) == len(LOOK_ALIKES)


def test_boundaries_of_sequences_count() -> None:
    """REC-12, REC-16."""
    values: list[Any] = [
        [[1], 2],
        [1, [2]],
        [1, 2],
        [2, 1],
        ["ab", "c"],
        ["a", "bc"],
        [b"ab", b"c"],
        ["1", 2],
        [[], []],
        [[]],
    ]
    assert len({digest_record(value) for value in values}) == len(values)


def test_integers_of_any_size() -> None:
    """REC-08."""
    values = [0, 1, -1, 15, 16, 2**63, 2**64, -(2**64), 10**5000]
    assert len({encode_record(value) for value in values}) == len(values)


def test_floats_keep_their_bits() -> None:
    """REC-09, REC-20, REC-21, REC-22."""
    assert digest_record(1.0) != digest_record(math.nextafter(1.0, 2.0))
    assert digest_record([0.0]) != digest_record([-0.0])
    assert digest_record({"x": 0.0}) != digest_record({"x": -0.0})
    assert digest_record(nan(1)) != digest_record(nan(2))
    assert digest_record(nan(7)) == digest_record(nan(7))
    assert len({digest_record(v) for v in (math.inf, -math.inf, math.nan, 0.1)}) == 4


def test_strings_keep_their_code_points() -> None:
    """REC-10, REC-23 to REC-26, REC-41."""
    texts = ["\u00e9", "e\u0301", "\U0001f600", "\ud83d\ude00", "\ud800", "\udc00", "\\ud800", ""]
    assert len({digest_record(text) for text in texts}) == len(texts)
    assert len({digest_record({text: 1}) for text in texts}) == len(texts)
    both = {"\U0001f600": 1, "\ud83d\ude00": 2}
    assert digest_record(both) != digest_record({"\U0001f600": 2, "\ud83d\ude00": 1})


def test_bytes_are_not_text() -> None:
    """REC-11."""
    assert digest_record(bytes(range(256))) != digest_record(bytes(range(256)).decode("latin-1"))
    assert digest_record(b"abc") != digest_record("abc")


@pytest.mark.parametrize("value", UNSUPPORTED, ids=lambda v: type(v).__name__)
def test_unsupported_values_are_refused(value: Any) -> None:
    """REC-27, REC-31 to REC-34, REC-38, REC-39: at the top and nested, by exact type."""
    for wrapped in (value, [value], (1, value), {"k": value}):
        with pytest.raises(TypeError, match=type(value).__qualname__):
            encode_record(wrapped)


@pytest.mark.parametrize("key", [1, b"a", None, Colour.RED, ("a",)])
def test_keys_must_be_text(key: Any) -> None:
    """REC-28."""
    with pytest.raises(TypeError, match="keys must be str"):
        encode_record({"a": {key: 1}})


def test_cycles_are_refused() -> None:
    """REC-29."""
    loop: list[Any] = []
    loop.append(loop)
    table: dict[str, Any] = {}
    table["self"] = table
    first: list[Any] = []
    first.append({"second": (first,)})
    for value in (loop, table, first):
        with pytest.raises(ValueError, match="contain itself"):
            encode_record(value)


def test_depth_is_bounded_and_repetition_is_not_a_cycle() -> None:
    """REC-40, and a clear error instead of a stack overflow."""
    shared = [1]
    assert digest_record([shared, shared]) == digest_record([[1], [1]])
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested deeper"):
        encode_record(deep)


def test_no_text_of_an_object_is_ever_asked_for() -> None:
    """REC-30."""
    asked = []

    class Curious:
        def __str__(self) -> str:
            asked.append("str")
            return "x"

        def __repr__(self) -> str:
            asked.append("repr")
            return "x"

    with pytest.raises(TypeError):
        encode_record([Curious()])
    assert asked == []


def test_digest_is_complete_and_version_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-02, REC-04, REC-36."""
    record = {"a": [1, "x"]}
    assert isinstance(encode_record(record), bytes)
    assert digest_record(record) == hashlib.sha256(encode_record(record)).hexdigest()
    assert re.fullmatch("[0-9a-f]{64}", digest_record(record))
    before = digest_record(record)
    monkeypatch.setattr(records_module, "RECORD_VERSION", records_module.RECORD_VERSION + 1)
    assert digest_record(record) != before


def test_golden_digests() -> None:
    """REC-35: whoever moves these raises RECORD_VERSION."""
    assert records_module.RECORD_VERSION == 1
    assert encode_record({"b": [None, True, -255], "a": (1.5, "\ud800", b"\0")}) == (
        b"pypto-record:1\nd2:s1:at3:f\x3f\xf8\x00\x00\x00\x00\x00\x00s3:\xed\xa0\x80b1:\x00s1:bl3:NTi-ff;"
    )
    assert digest_record({"rows": 32, "cols": 64}) == "16af96fab236b8e65ee8577fdc17c5c08f8844da9fd0ca0204f97d02c82b4d8e"


def test_equal_in_other_processes() -> None:
    """REC-01: hash seed and -O do not act."""
    script = (
        "from pypto._identity import digest_record, canonical_json;"
        "r = {'n' + str(i): [i, {'z': 1.5, 'a': None}] for i in range(50)};"
        "print(digest_record(r)); c = {k: v[0] for k, v in r.items()}; print(canonical_json(c).decode())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, *flags, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
            check=True,
            capture_output=True,
        ).stdout
        for seed, flags in itertools.product(("0", "1", "random"), ([], ["-O"]))
    }
    assert len(outputs) == 1


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def typed(value: Any) -> Any:
    """The value with its types made visible, so that == tells what the encoding must tell."""
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, tuple(typed(item) for item in value))
    if isinstance(value, dict):
        return ("dict", frozenset((key, typed(item)) for key, item in value.items()))
    return (type(value).__name__, struct.pack(">d", value) if isinstance(value, float) else value)


@given(PLAIN, PLAIN)
def test_equal_encodings_are_equal_values(first: Any, second: Any) -> None:
    """REC-03: the encoding is one to one."""
    assert (encode_record(first) == encode_record(second)) == (typed(first) == typed(second))


def test_canonical_json_has_one_spelling() -> None:
    assert canonical_json({"b": (1, "é"), "a": None}) == '{"a":null,"b":[1,"é"]}'.encode()
    assert canonical_json({"a": None, "b": [1, "é"]}) == canonical_json({"b": (1, "é"), "a": None})


@pytest.mark.parametrize("value", [1.5, math.nan, b"x", {1}, {1: 2}, Number.ONE, Colour.RED])
def test_canonical_json_refuses_what_has_many_spellings(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json([value])


def test_canonical_json_refuses_surrogates_and_cycles() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for value in ("\ud800", {"\udc00": 1}, loop):
        with pytest.raises(ValueError):
            canonical_json(value)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1}', b'{"b":1,"a":2}', b'{"a":1}\n', b'{"a":1,"a":1}', b'"\\u00e9"', b"1.0", b"NaN", b"[1", b"\xff",
        b'\xef\xbb\xbf{"a":1}', b'"\\ud800"', b"[" * 100_000, b"",
    ],
    ids=repr,
)  # fmt: skip
def test_other_spellings_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="the file"):
        parse_canonical_json(data, "the file")


def test_parsing_returns_what_was_written() -> None:
    value = {"a": [1, -2, 2**70], "ü": {"x": None, "y": True}, "s": '\U0001f600\n"\\'}
    assert parse_canonical_json(canonical_json(value), "x") == value
