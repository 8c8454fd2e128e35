"""What enters the source digest, and what does not."""

from __future__ import annotations

import json
import types

import pytest
from kernel_texts import entry, incore, module

import pypto.language as pl
from pypto.language.errors import KernelNameError
from pypto.language.lower import lower
from pypto.language.source import KernelSource, collect

KERNELS = """\
BLOCK = 64
UNUSED = 1

@incore
def helper(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    pl.store(pl.load(a, [0, 0], [BLOCK, 64]) * SCALE, [0, 0], out)

@incore
def unrelated(a: pl.Tensor):
    pass

SCALE = 0.5

@entry
def main(a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    helper(a, out)
    return out
"""


def record_of(text: str, filename: str | None = None, **changed: object) -> str:
    names = module(text, filename)
    names.update(changed)
    return json.dumps(collect(names["main"]).record(), sort_keys=True)


def test_record_is_plain_data_in_fixed_order() -> None:
    record = collect(module(KERNELS)["main"]).record()
    assert [f["name"] for f in record["functions"]] == ["main", "helper"]
    main, helper = record["functions"]
    assert main["values"] == [["helper", ["function", 1]]]
    assert helper["values"] == [
        ["pl.store", ["operation", "store"]],
        ["pl.load", ["operation", "load"]],
        ["BLOCK", ["int", "64"]],
        ["SCALE", ["float", "0x1.0000000000000p-1"]],
    ]
    assert main["text"].splitlines()[0] == "@entry"
    assert main["text"].endswith("    return out")
    assert main["signature"][0] == ["a", "tensor", "in", [64, 64], "FP32", None]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BLOCK = 64", "BLOCK = 32"),
        ("SCALE = 0.5", "SCALE = 0.25"),
        ("SCALE = 0.5", "SCALE = True"),
        ("out)\n\n@incore\ndef unrelated", "out)  # said\n\n@incore\ndef unrelated"),
        ("def helper(a: pl.Tensor,", "def helper(a: pl.Tensor[[64, 64], pl.FP32],"),
        ("pl.Tensor[[64, 64], pl.FP32], out", "pl.Tensor[[64, 64], pl.FP16], out"),
        ("helper(a, out)\n    return", "helper(a, out)\n\n    return"),
    ],
)
def test_changes_that_matter_change_the_record(old: str, new: str) -> None:
    assert old in KERNELS
    assert record_of(KERNELS) != record_of(KERNELS.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("UNUSED = 1", "UNUSED = 2"),
        ("UNUSED = 1", "UNUSED = 1\n\n\n# more lines\n"),
        ("def unrelated(a: pl.Tensor):\n    pass", "def unrelated(a: pl.Tensor):\n    x = a"),
        ("BLOCK = 64", "BLOCK = 32 + 32"),
    ],
)
def test_changes_that_do_not_matter_keep_the_record(old: str, new: str) -> None:
    assert old in KERNELS
    assert record_of(KERNELS) == record_of(KERNELS.replace(old, new, 1))


def test_place_and_module_name_do_not_enter() -> None:
    here, there = record_of(KERNELS, "/one/kernels.py"), record_of(KERNELS, "/another/place/k.py")
    assert here == there
    assert "/one" not in here
    assert "kernels_from_text" not in here


def test_values_are_read_at_every_collection() -> None:
    names = module(KERNELS)
    before = json.dumps(collect(names["main"]).record())
    names["BLOCK"] = 16
    assert json.dumps(collect(names["main"]).record()) != before
    names["BLOCK"] = 64
    assert json.dumps(collect(names["main"]).record()) == before


def test_parser_sees_the_values_of_the_closure_and_no_later_ones() -> None:
    names = module(KERNELS)
    closure = collect(names["main"])
    names["BLOCK"] = 16
    (load,) = [op for op in lower(closure, {}).functions["helper"].body.walk() if op.name == "tile.load"]
    assert load.result.type.shape == (64, 64)


def test_lists_are_frozen_in_the_closure() -> None:
    names = module(KERNELS.replace("[BLOCK, 64]", "SHAPE"))
    names["SHAPE"] = [64, 64]
    closure = collect(names["main"])
    names["SHAPE"][0] = 32
    (load,) = [op for op in lower(closure, {}).functions["helper"].body.walk() if op.name == "tile.load"]
    assert load.result.type.shape == (64, 64)


def test_names_inside_annotations_enter_by_their_meaning() -> None:
    text = "N = 64\n" + KERNELS.replace("a: pl.Tensor[[64, 64]", "a: pl.Tensor[[N, N]")
    assert record_of(text) != record_of(text.replace("N = 64\n", "N = 128\n"))


def test_live_and_postponed_annotations_give_one_signature() -> None:
    text = "N = pl.dynamic('N')\n" + KERNELS.replace("a: pl.Tensor[[64, 64]", "a: pl.Tensor[[N, 64]")
    postponed = text.replace("a: pl.Tensor[[N, 64], pl.FP32]", "a: 'pl.Tensor[[N, 64], pl.FP32]'")
    live = json.loads(record_of(text))["functions"][0]["signature"]
    assert live[0] == ["a", "tensor", "in", [["dynamic", "N"], 64], "FP32", None]
    assert json.loads(record_of(postponed))["functions"][0]["signature"] == live


def test_functions_of_other_modules_are_reached_by_attribute() -> None:
    other = types.ModuleType("other")
    other.helper = module(KERNELS)["helper"]  # type: ignore[attr-defined]
    names = module(KERNELS.replace("    helper(a, out)", "    other.helper(a, out)"))
    names["other"] = other
    closure = collect(names["main"])
    assert [f["name"] for f in closure.record()["functions"]] == ["main", "helper"]
    assert "helper" in lower(closure, {}).functions


def test_closures_give_values() -> None:
    def made(scale: float) -> KernelSource:
        @incore
        def part(a: pl.Tensor, out: pl.Out[pl.Tensor]):
            pl.store(pl.load(a, [0, 0], [16, 16]) * scale, [0, 0], out)

        @entry
        def main(a: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            part(a, out)
            return out

        return main

    one, two = (collect(made(scale)).record() for scale in (1.0, 2.0))
    assert one["functions"][0]["text"] == two["functions"][0]["text"]
    assert one["functions"][1]["values"][-1] == ["scale", ["float", "0x1.0000000000000p+0"]]
    assert two["functions"][1]["values"][-1] == ["scale", ["float", "0x1.0000000000000p+1"]]


def test_text_is_exact_with_its_indentation() -> None:
    class Holder:
        @incore
        def part(a: pl.Tensor):  # a comment stays
            pass

    text = collect(Holder.part).record()["functions"][0]["text"]
    assert text == ("        @incore\n        def part(a: pl.Tensor):  # a comment stays\n            pass")


def test_value_of_unsupported_type_is_named() -> None:
    names = module(KERNELS)
    names["BLOCK"] = object()
    with pytest.raises(KernelNameError, match="BLOCK has a value of type object, which cannot enter a kernel"):
        collect(names["main"])


def test_entry_reached_by_name_is_not_pulled_in() -> None:
    names = module(KERNELS)
    text = "@entry\ndef outer(a: pl.Tensor):\n    main(a)\n"
    outer = module(text)
    outer["main"] = names["main"]
    assert [f["name"] for f in collect(outer["outer"]).record()["functions"]] == ["outer"]


def test_source_read_at_decoration_survives_a_changed_file(tmp_path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text("from kernel_texts import *\nimport pypto.language as pl\n" + KERNELS)
    names: dict = {"__name__": "k"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    path.write_text("# gone\n")
    assert names["main"].text.text.startswith("@entry\ndef main(")


def test_windows_newlines_are_normalised(tmp_path) -> None:
    path = tmp_path / "kernels.py"
    text = "from kernel_texts import *\nimport pypto.language as pl\n" + KERNELS
    path.write_bytes(text.replace("\n", "\r\n").encode())
    names: dict = {"__name__": "k"}
    exec(compile(path.read_bytes(), str(path), "exec"), names)
    assert json.dumps(collect(names["main"]).record(), sort_keys=True) == record_of(KERNELS)
