"""Where numbers are computed that change during a kernel."""

from __future__ import annotations

from pypto.codegen.scalars import Apply, Const, Leaf
from pypto.codegen.sidework import SideWork
from pypto.ir.types import INDEX, INT32


def plus(*parts: object) -> Apply:
    return Apply("add", parts, INDEX)  # type: ignore[arg-type]


def test_what_is_made_of_an_element_is_assigned_behind_its_read() -> None:
    side = SideWork(1)
    read = side.read(INT32)
    leaf = Leaf("read", read.slot, INT32)
    slot = side.slot(plus(leaf, Const(3, INDEX)), "index")
    assert read.after == [f"$a{slot} = pypto::narrow(($a{read.slot} + 3));"]
    assert side.slot(plus(leaf, Const(3, INDEX)), "index") == slot


def test_the_latest_of_all_places_is_taken() -> None:
    side = SideWork(0)
    first = side.read(INT32)
    loop = side.open("for")
    variable = Leaf("loop", loop.number, INDEX, loop.number)
    outside = side.slot(plus(Leaf("read", first.slot, INT32), Const(1, INDEX)), "index")
    begin = side.slot(plus(Leaf("read", first.slot, INT32), variable), "index")
    second = side.read(INT32)
    inner = side.slot(plus(Leaf("read", second.slot, INT32), variable), "index")
    side.close(loop)
    assert [text.split(" = ")[0] for text in first.after] == [f"$a{outside}"]
    assert [text.split(" = ")[0] for text in loop.begin] == [f"$a{begin}"]
    assert [text.split(" = ")[0] for text in second.after] == [f"$a{inner}"]


def test_an_element_that_a_branch_reads_is_there_behind_the_outermost_branch() -> None:
    side = SideWork(0)
    outer = side.open("if")
    inner = side.open("if")
    read = side.read(INT32)
    side.close(inner)
    within = side.slot(plus(Leaf("read", read.slot, INT32), Const(1, INDEX)), "index")
    side.close(outer)
    behind = side.slot(plus(Leaf("read", read.slot, INT32), Const(1, INDEX)), "index")
    assert [text.split(" = ")[0] for text in inner.after] == [f"$a{within}"]
    assert [text.split(" = ")[0] for text in outer.after] == [f"$a{behind}"]
    assert within != behind
