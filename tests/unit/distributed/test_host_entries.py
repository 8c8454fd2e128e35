"""HOST entries: what they become, and what they may not hold."""

from __future__ import annotations

import json
from typing import Any

import host_programs
import pytest

import pypto.language as pl
from pypto.codegen.host import generate_distributed
from pypto.ir.nodes import FunctionKind
from pypto.language.source import collect


def config_of(function: Any) -> dict[str, Any]:
    files = generate_distributed(function.lower(), "Ascend910B", "sim", "host_build_graph")
    config: dict[str, Any] = json.loads(files["kernel_config.json"])
    return config


def test_a_host_entry_is_compiled_with_the_entries_it_calls_and_those_with_what_is_theirs() -> None:
    closure = collect(host_programs.spliced)
    assert [f.kernel.name for f in closure.functions] == ["spliced", "copy_all", "copy", "copy_tile"]
    chip = closure.within(host_programs.copy)
    assert [f.kernel.name for f in chip.functions] == ["copy", "copy_tile"]
    # An entry of its own still pulls no other entry in.
    assert [f.kernel.name for f in collect(host_programs.copy).functions] == ["copy", "copy_tile"]


def test_a_chip_is_what_its_entry_compiled_alone_is() -> None:
    files = generate_distributed(host_programs.spliced.lower(), "Ascend910B", "sim", "host_build_graph")
    from pypto.codegen.generate import generate

    alone = generate(host_programs.copy.lower(), "Ascend910B", "sim")
    assert {f"chips/0/{name}": data for name, data in alone.items()} | {
        "kernel_config.json": files["kernel_config.json"]
    } == files


def test_equal_types_share_a_chip_and_others_have_their_own() -> None:
    config = config_of(host_programs.two_variants)
    assert config["chips"] == ["chips/0", "chips/1"]
    calls = [op for op in _ops(config["host"]["body"]) if op["op"] == "host.call"]
    assert [call["attrs"]["chip"] for call in calls] == [0, 0, 1]
    assert {call["attrs"]["callee"] for call in calls} == {"copy_any"}


def test_the_same_program_gives_the_same_bytes() -> None:
    made = [generate_distributed(host_programs.numbers.lower(), "Ascend910B", "sim", "host_build_graph") for _ in "ab"]
    assert made[0] == made[1]


def test_a_program_shows_its_chips() -> None:
    program = host_programs.two_variants.lower()
    assert program.entry_function.kind is FunctionKind.HOST
    text = str(program)
    assert "host @two_variants(" in text
    assert text.count("\nchip ") == len(program.chips) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scoped", "with pl.at(...) stands in the HOST entry scoped, which computes nothing itself"),
        (
            "no_device",
            "copy is called from a HOST entry without device=; say on which rank it runs, as copy(..., device=r)",
        ),
        (
            "kernel_called",
            "copy_tile is a device kernel; a HOST entry calls functions under @pl.jit, and those call it",
        ),
        ("no_chip", "no_chip calls no function under @pl.jit; a HOST entry runs at least one on a rank"),
        ("wrong_op", "op must be a ReduceOp such as pl.distributed.ReduceOp.Sum, not the string 'sum'"),
        ("writes_input", "x is an input; to write it, annotate it with pl.Out or pl.InOut"),
        ("forgets_output", "z is an output of forgets_output, but no chip and no collective gets it"),
        ("buffer_in_loop", "pl.distributed.alloc_window_buffer stands in a loop or an if; put it in front of them"),
        ("no_buffer", "buf must come from alloc_window_buffer, not a tensor [NR, 4, 8] of FP32"),
        ("signal_of_floats", "signal must be a window of INT32, not a tensor [4, 8] of FP32"),
        ("asks_for_ranks", "pl.distributed.world_size stands in a function that is no HOST entry"),
        ("calls_host", "spliced is an entry; an entry calls functions under @pl.jit.incore, .inline and .opaque only"),
    ],
)
def test_what_a_host_entry_may_not_hold_is_one_error_with_its_place(name: str, message: str) -> None:
    with pytest.raises(pl.CompileError) as caught:
        getattr(host_programs, name).lower()
    assert message in caught.value.message
    assert caught.value.filename == host_programs.__file__
    assert caught.value.function == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("loads_from_no_window", "target must be a window, not a tensor [4, 8] of FP32; a HOST entry makes it with"),
        ("signals_with_floats", "target must be a window of INT32, not a tensor [4, 8] of FP32"),
        ("meets_without_signal", "a core needs a signal, a window of INT32 with one cell for each rank"),
        ("adds_remotely", "atomic is not supported: on the simulator ranks are processes"),
        ("waits_for_nothing", "cmp must be a WaitCmp, not the string 'ge'"),
    ],
)
def test_what_a_core_cannot_ask_of_other_ranks_is_one_error(name: str, message: str) -> None:
    kernel = getattr(host_programs, name)
    with pytest.raises(pl.CompileError) as caught:
        host_programs.chip_of(kernel, pl.INT32 if name == "waits_for_nothing" else pl.FP32).lower()
    assert message in caught.value.message
    assert caught.value.function == name


def test_a_window_is_needed_where_a_chip_wants_one() -> None:
    with pytest.raises(pl.CompileError, match="meeting: data must be a window, not a tensor"):
        host_programs.no_window.lower()


def test_a_chip_with_windows_gets_all_ranks_parts_and_the_rank() -> None:
    files = generate_distributed(host_programs.ranks_meet.lower(), "Ascend910B", "sim", "host_build_graph")
    params = json.loads(files["chips/0/kernel_config.json"])["params"]
    assert [(p["name"], p.get("shape")) for p in params] == [
        ("data", ["world_size", 4, 8]),
        ("signal", ["world_size", "NR", 1]),
        ("y", [4, 8]),
        ("rank", None),
    ]


def test_a_host_entry_computes_nothing() -> None:
    with pytest.raises(pl.CompileError) as caught:
        host_programs.computes.lower()
    assert caught.value.function == "computes"


def test_names_exist_in_short_and_in_full() -> None:
    pld = pl.distributed
    assert pld.allreduce is pld.tensor.allreduce
    assert pld.world_size is pld.system.world_size
    assert {"allreduce", "allgather", "all_gather", "barrier", "window"} <= set(dir(pld))
    with pytest.raises(AttributeError, match="has no attribute 'all_reduced'"):
        pld.all_reduced  # noqa: B018
    with pytest.raises(pl.OutsideKernelError):
        pld.tensor.barrier()


def _ops(block: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for op in block["ops"]:
        found.append(op)
        for region in op.get("regions", ()):
            found += _ops(region)
    return found
