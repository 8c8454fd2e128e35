"""What correct kernels become."""

from __future__ import annotations

import math

from kernel_texts import in_entry, in_incore, in_scope, lowered, module

from pypto.ir.nodes import CoreType, Direction, Function, Op, Program
from pypto.ir.printer import print_function
from pypto.ir.types import FP16, FP32, INDEX, INT64, DynDim, MemorySpace, ScalarType, TensorType, TileType
from pypto.language.lower import lower
from pypto.language.signature import ArgSpec
from pypto.language.source import collect


def ops(function: Function, name: str) -> list[Op]:
    return [op for op in function.body.walk() if op.name == name]


def only(program: Program) -> Function:
    (function,) = program.incore_functions()
    return function


def body_lines(function: Function) -> list[str]:
    return [line.strip() for line in print_function(function).splitlines()[1:-1]]


def test_scope_becomes_a_function_with_directions() -> None:
    function = only(lowered(in_scope("out[:] = a + b * x")))
    assert [(p.name, p.direction) for p in function.params] == [
        ("b", Direction.In),
        ("x", Direction.In),
        ("a", Direction.In),
        ("out", Direction.Out),
    ]
    assert function.core is CoreType.AIV
    assert body_lines(function) == [
        "%c = arith.constant {value=0} : INDEX",
        "%c_1 = arith.constant {value=0} : INDEX",
        "%b_1 = tile.load %b, %c, %c_1 {transposed=false} : Tile[[64, 64], FP32, Vec]",
        "%v = tile.muls %b_1, %x : Tile[[64, 64], FP32, Vec]",
        "%c_2 = arith.constant {value=0} : INDEX",
        "%c_3 = arith.constant {value=0} : INDEX",
        "%a_1 = tile.load %a, %c_2, %c_3 {transposed=false} : Tile[[64, 64], FP32, Vec]",
        "%v_1 = tile.add %a_1, %v : Tile[[64, 64], FP32, Vec]",
        "%c_4 = arith.constant {value=0} : INDEX",
        "%c_5 = arith.constant {value=0} : INDEX",
        "tile.store %v_1, %out, %c_4, %c_5",
        "scf.return",
    ]


def test_scopes_are_numbered_in_program_order_and_may_be_named() -> None:
    scope = "with pl.at(level=pl.Level.CORE_GROUP{}):\n    out[:] = a\n"
    looped = "for i in pl.range(n):\n    with pl.at(level=pl.Level.CORE_GROUP):\n        out[:] = b\n"
    program = lowered(in_entry(scope.format("") + looped + scope.format(", name_hint='last'") + "return out"))
    assert [f.name for f in program.incore_functions()] == ["main_1", "main_2", "last"]
    assert program.entry_function.returns == (5,)


def test_matrix_operands_are_loaded_to_mat_and_moved() -> None:
    function = only(lowered(in_incore("pl.store(pl.matmul(h, h, b_trans=True), [0, 0], out)")))
    assert function.core is CoreType.AIC
    assert [op.result.type.memory for op in ops(function, "tile.load")] == [MemorySpace.Mat] * 2
    assert [op.result.type.memory for op in ops(function, "tile.move")] == [MemorySpace.Left, MemorySpace.Right]
    (product,) = ops(function, "tile.matmul")
    assert product.attrs == {"a_trans": False, "b_trans": True}
    assert product.result.type == TileType((64, 64), FP32, MemorySpace.Acc, (64, 64))


def test_loop_carries_tiles_and_scalars() -> None:
    function = only(
        lowered(
            in_incore(
                "total = pl.full([64, 64], pl.FP32, 0.0)\ncount = 0\n"
                "for i in pl.range(n):\n    step = i * 2\n    total = total + a\n    count += step\n"
                "if count > 5:\n    total = total * 2.0\nout[:] = total"
            )
        )
    )
    (loop,) = ops(function, "scf.for")
    # Names that only live inside one turn are not carried.
    assert [v.name for v in loop.results] == ["total", "count"]
    assert [v.type for v in loop.results] == [
        TileType((64, 64), FP32, MemorySpace.Vec, (64, 64)),
        ScalarType(INDEX),
    ]
    (branch,) = ops(function, "scf.if")
    assert [v.name for v in branch.results] == ["total"]


def test_name_reused_in_two_loops_is_not_carried() -> None:
    body = (
        "for i in pl.range(n):\n    t = a + b\n    out[:] = t\n"
        "for j in pl.range(n):\n    t = pl.exp(a[0:32, :])\n    out[0:32, :] = t"
    )
    for loop in ops(only(lowered(in_incore(body))), "scf.for"):
        assert loop.results == []


def test_nested_loops_carry_through_both() -> None:
    function = only(
        lowered(
            in_incore(
                "t = pl.full([64, 64], pl.FP32, 0.0)\nfor i in pl.range(n):\n"
                "    for j in pl.range(i):\n        t = t + a\nout[:] = t"
            )
        )
    )
    assert [len(loop.results) for loop in ops(function, "scf.for")] == [1, 1]


def test_known_conditions_choose_while_compiling() -> None:
    text = "FAST = True\n" + in_scope("if FAST:\n    out[:] = a\nelse:\n    out[:] = undefined_shape(a)").replace(
        "undefined_shape(a)", "pl.load(a, [0, 0], [7, 7])"
    )
    assert ops(only(lowered(text)), "scf.if") == []


def test_numbers_are_folded_as_python_does() -> None:
    function = only(lowered("D = 128\n" + in_scope("out[:] = a * (1.0 / math.sqrt(D))")))
    (constant,) = [op for op in ops(function, "arith.constant") if op.result.type == ScalarType(FP32)]
    assert constant.attrs["value"] == 1.0 / math.sqrt(128)


def test_slice_with_run_time_offset_has_a_known_size() -> None:
    program = lowered(
        "S = pl.dynamic('S')\n@entry\n"
        "def main(k: pl.Tensor[[S, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):\n"
        "    for i in pl.range(S // 16):\n        with pl.at(level=pl.Level.CORE_GROUP):\n"
        "            out[:] = k[i * 16:(i + 1) * 16, :]\n    return out\n"
    )
    (load,) = ops(only(program), "tile.load")
    assert load.result.type.shape == (16, 64)
    assert program.entry_function.params[0].type.shape == (DynDim("S"), 64)


def test_valid_lengths_travel_with_tiles() -> None:
    function = only(
        lowered(
            in_incore(
                "m = pl.min(64, n - 3)\nt = pl.load(a, [0, 0], [64, 64], valid_shape=[64, m])\n"
                "s = pl.row_expand_sub(t, pl.row_max(t))\nout[0:64, 0:m] = s"
            )
        )
    )
    (store,) = ops(function, "tile.store")
    (least,) = ops(function, "arith.min")
    rows, columns = store.operands[0].type.valid
    assert (rows, columns.owner.name, columns.owner.operands) == (64, "arith.cast", [least.result])


def test_equal_lengths_computed_twice_are_equal() -> None:
    body = (
        "t = pl.load(a, [0, 0], [64, 64], valid_shape=[64, pl.min(64, n - 2 * 3)])\n"
        "u = pl.load(b, [0, 0], [64, 64], valid_shape=[64, pl.min(64, n - 6)])\nout[0:64, 0:pl.min(64, n - 6)] = t + u"
    )
    assert len(ops(only(lowered(in_incore(body))), "tile.add")) == 1


def test_functions_are_specialized_by_their_arguments() -> None:
    program = lowered(
        "@incore\ndef copy(x: pl.Tensor, y: pl.Out[pl.Tensor]):\n    y[:] = x\n    return y\n"
        + in_entry(
            "w = pl.create_tensor([32, 64], dtype=pl.FP32)\nout = copy(a, out)\nw = copy(b[0:32, :], y=w)\n"
            "copy(h, pl.create_tensor([64, 64], dtype=pl.FP16))\ncopy(b, out)\nreturn out"
        )
    )
    shapes = {f.name: f.params[0].type for f in program.incore_functions()}
    assert shapes == {
        "copy": TensorType((64, 64), FP32),
        "copy_2": TensorType((32, 64), FP32, is_view=True),
        "copy_3": TensorType((64, 64), FP16),
    }
    calls = [op.attrs["callee"] for op in program.entry_function.body.walk() if op.name == "func.call"]
    assert calls == ["copy", "copy_2", "copy_3", "copy"]


def test_scalar_arguments_take_the_declared_type() -> None:
    program = lowered(
        "@incore\ndef part(i: pl.Scalar[pl.INDEX], f: float, g: pl.Scalar[pl.INT32] = 3):\n    pass\n"
        + in_scope("out[:] = a").replace("    with", "    part(n, 2)\n    with", 1)
    )
    call = next(op for op in program.entry_function.body.walk() if op.attrs.get("callee") == "part")
    assert [str(v.type) for v in call.operands] == ["INDEX", "FP32", "INT32"]


def test_run_time_sizes_become_dimensions_of_the_parameter() -> None:
    program = lowered(
        "@incore\ndef part(w: pl.Tensor, o: pl.Out[pl.Tensor]):\n"
        "    rows = w.shape[0]\n    o[0:rows, :] = pl.load(w, [0, 0], [64, 64], valid_shape=[rows, 64])\n"
        + in_entry("w = pl.create_tensor([n, 64], dtype=pl.FP32)\npart(w, out)\nreturn out")
    )
    function = only(program)
    assert function.params[0].type.shape == (DynDim("w_0"), 64)
    assert len(ops(function, "tensor.dim")) == 1


def test_accumulation_that_starts_in_the_loop() -> None:
    function = only(
        lowered(
            in_incore(
                "acc = pl.create_tile([64, 64], dtype=pl.FP32, target_memory=pl.MemorySpace.Acc)\n"
                "for k in pl.range(4):\n"
                "    left, right = pl.load(h, [0, k * 16], [64, 16]), pl.load(h, [k * 16, 0], [16, 64])\n"
                "    acc = pl.matmul_acc(acc, left, right, init_cond=k == 0)\n"
                "pl.store(acc, [0, 0], out)"
            )
        )
    )
    (choice,) = ops(function, "scf.if")
    assert [region.ops[-2].name for region in choice.regions] == ["tile.matmul", "tile.matmul_acc"]
    assert choice.result.type.memory is MemorySpace.Acc


def test_scalars_mix_only_whole_with_whole() -> None:
    part = "@incore\ndef part(f: float, i: pl.Scalar[pl.INT32], o: pl.Out[pl.Tensor]):\n"
    text = f"{part}    o[:] = pl.full([64, 64], pl.FP32, f)\n" + in_entry(
        "part(x * 2, n, out)\nm = -n if n > 3 and x < 1.0 else 4\npart(x + pl.cast(n, pl.FP32), m, out)\nreturn out"
    )
    entry = lowered(text).entry_function
    assert [str(op.result.type) for op in ops(entry, "arith.mul")] == ["FP32"]
    assert [op.result.type for op in ops(entry, "arith.select")] == [ScalarType(INT64)]


def test_entry_divides_only_when_the_quotient_is_chosen() -> None:
    text = "@incore\ndef part(i: int, o: pl.Out[pl.Tensor]):\n    o[:] = pl.full([64, 64], pl.FP32, 0.0)\n"
    entry = lowered(
        text
        + in_entry(
            "i = 16 // n if n > 0 else 0\nj = n + 1 if n > 0 else n\nif n != 0 and 16 // n > 2:\n    part(i, out)\n"
            "part(j, out)\nreturn out"
        )
    ).entry_function
    choices = [op for op in ops(entry, "scf.if") if op.results]
    assert [[op.name for op in choice.regions[0].ops][-2:] for choice in choices] == [
        ["arith.floordiv", "scf.yield"],
        ["arith.cmp", "scf.yield"],
    ]
    assert len(ops(entry, "arith.select")) == 1
    quotients = [op for op in entry.body.ops if op.name == "arith.floordiv"]
    assert quotients == []


def test_samples_complete_annotations() -> None:
    text = (
        "N = pl.dynamic('N')\n@entry\ndef main(x: pl.Tensor, y: pl.Tensor[[N, 8], pl.FP32], out: pl.Out[pl.Tensor]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n        out[:] = pl.cast(x, pl.FP32)\n    return out\n"
    )
    closure = collect(module(text)["main"])
    given = {
        "x": ArgSpec(FP16, (32, 64)),
        "y": ArgSpec(FP32, (100, 8)),
        "out": ArgSpec(FP32, (32, 64)),
    }
    program = lower(closure, given)
    assert [p.type.shape for p in program.entry_function.params] == [(32, 64), (DynDim("N"), 8), (32, 64)]


def test_strings_docstrings_pass_and_tuples_are_understood() -> None:
    function = only(
        lowered(
            "MODES = ('rint', 'floor')\nSHAPE = [64, 64]\n"
            + in_scope(
                "'''what it does'''\nrows, cols = a.shape\npass\ny: int = rows\n"
                "t = pl.cast(pl.load(a, (0, 0), SHAPE), pl.FP16, mode=MODES[1])\nout[:] = pl.cast(t, a.dtype)"
            )
        )
    )
    assert [op.attrs["mode"] for op in ops(function, "tile.cast")] == ["floor", "round"]


def test_operators_choose_the_operation_by_their_operands() -> None:
    function = only(
        lowered(
            in_scope(
                "t = a + b\nu = 1.0 - t\nv = 2.0 / u\nw = -v\nz = pl.maximum(w, 0.0)\n"
                "y = pl.minimum(z, b)\nout[:] = x * y / 3"
            )
        )
    )
    names = [op.name for op in function.body.walk() if op.name.startswith("tile.") and op.name != "tile.load"]
    assert names == [
        "tile.add",
        "tile.neg",
        "tile.adds",
        "tile.rdivs",
        "tile.neg",
        "tile.maximums",
        "tile.minimum",
        "tile.muls",
        "tile.divs",
        "tile.store",
    ]
