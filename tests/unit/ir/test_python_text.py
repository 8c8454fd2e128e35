"""Dumps of programs: Python that parses, reads like the kernel, and is the same every time."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from pypto.ir.builder import Builder
from pypto.ir.nodes import Block, Direction, Function, FunctionKind, Param, Program, Value
from pypto.ir.passes import pipeline
from pypto.ir.python_text import python_text
from pypto.ir.types import FP32, INDEX, INT32, ScalarType, TensorType

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "diagnostics"))

import diagnosed_kernels as kernels

NAMES = ("joined", "loops", "narrow", "sized")


def dumps(name: str) -> dict[str, str]:
    """The text after each pass."""
    from pypto.build.generate import lowered_program
    from pypto.jit.request import capture

    request = capture(getattr(kernels, name), (), {}, None)
    found: dict[str, str] = {}
    lowered_program(
        request.closure,
        request.specialization,
        lambda name, program: found.update({f"{len(found):02}{name}": python_text(program, f"After {name}")}),
    )
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_program_after_every_pass_is_python_that_parses(name: str) -> None:
    found = dumps(name)
    assert len(found) == 1 + len(pipeline.PASSES)
    for text in found.values():
        tree = ast.parse(text)
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert functions[0] == name
        assert "undefined_" not in text
    assert found == dumps(name)


def test_a_scope_becomes_a_function() -> None:
    found = dumps("joined")
    assert "with scope('scale'):" in found["00Parse"]
    last = found["09Verify"]
    assert "scope(" not in last
    functions = {node.name: node for node in ast.parse(last).body if isinstance(node, ast.FunctionDef)}
    assert list(functions) == ["joined", "scale", "square", "join"]
    assert ast.unparse(functions["scale"].decorator_list[0]) == "incore('aiv')"
    assert [ast.unparse(call) for call in functions["joined"].body if isinstance(call, ast.Expr)] == [
        "scale(x, factor, low)",
        "square(x, high)",
        "join(low, high, out)",
    ]


def test_carried_values_are_assigned() -> None:
    text = dumps("loops")["00Parse"]
    loop = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.For))
    assert ast.unparse(loop.iter) == "range(0, n_1, 1)"
    assert any(ast.unparse(node).endswith("= i > 2") for node in loop.body)
    branch = next(node for node in loop.body if isinstance(node, ast.If))
    last = loop.body[-1]
    assert isinstance(last, ast.Assign)
    # What the branch gives is what the next turn begins with.
    given = {ast.unparse(target) for node in branch.orelse if isinstance(node, ast.Assign) for target in node.targets}
    assert isinstance(last.value, ast.Tuple)
    assert {ast.unparse(each) for each in last.value.elts} & {
        name for each in given for name in each.strip("()").split(", ")
    }
    unknown = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.While))
    assert ast.unparse(unknown.test) == "True"
    assert isinstance(unknown.body[-1], ast.Assign)


def test_names_are_unique_and_legal() -> None:
    block = Block()
    first, second = Value("class", ScalarType(INT32), block), Value("class", ScalarType(INT32), block)
    third, fourth = Value("0", ScalarType(INDEX), block), Value("tile", TensorType((4,), FP32), block)
    builder = Builder(block)
    builder.op("arith.add", [first, second])
    builder.op("scf.return")
    params = [Param(each, Direction.In) for each in (first, second, third, fourth)]
    program = Program("f", {"f": Function("f", FunctionKind.ORCHESTRATION, params, block)})
    (function,) = (n for n in ast.parse(python_text(program, "Now")).body if isinstance(n, ast.FunctionDef))
    assert [argument.arg for argument in function.args.args] == ["class_", "class__1", "_0", "tile_1"]
    (addition,) = function.body
    assert ast.unparse(addition).endswith("= class_ + class__1")
