"""The registry, the builder and the rules of operations."""

from __future__ import annotations

import pytest

from pypto.ir.builder import Builder, function
from pypto.ir.errors import IRError
from pypto.ir.nodes import Block, CoreType, FunctionKind, Value
from pypto.ir.ops.lowering import ByElement, Form, Template
from pypto.ir.ops.registry import all_definitions, definition
from pypto.ir.types import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    DType,
    DynDim,
    MemorySpace,
    ScalarType,
    TensorType,
    TileType,
)
from pypto.ir.values import difference, same_value


def builder() -> Builder:
    return Builder(Block())


def tile(rows: int, cols: int, dtype: DType = FP32, memory: MemorySpace = MemorySpace.Vec, valid=None) -> Value:
    return Value("x", TileType((rows, cols), dtype, memory, valid or (rows, cols)))


def test_every_operation_says_what_it_is() -> None:
    families = {"arith", "scf", "func", "task", "tensor", "tile", "host"}
    for name, known in all_definitions().items():
        assert name.split(".")[0] in families
        assert (known.incore or known.entry) != name.startswith("host.")
        variadic = [operand.variadic for operand in known.operands]
        assert not any(variadic[:-1]), "only the last operand may be variadic"
        assert name.startswith("tile.") == (known.incore and not known.entry)


def test_lowerings_name_operands_and_results_that_exist() -> None:
    for name, known in all_definitions().items():
        names = {operand.name for operand in known.operands}
        lowering = known.lowering
        template = lowering.template if isinstance(lowering, ByElement) else lowering
        if isinstance(template, Template):
            attrs = {attr.name for attr in known.attrs}
            assert {name.partition(".")[0] for name in template.ins} <= names | attrs | {"result"}, name
            assert template.name.format(**dict.fromkeys(attrs, "x")), name
        instructions = lowering.instructions if isinstance(lowering, ByElement) else lowering
        if isinstance(instructions, Template) or not instructions:
            continue
        written: set[str] = set()
        for instruction in instructions:
            assert set(instruction.ins) <= names | written, name
            assert len(instruction.ins) == 1 or isinstance(instruction.form, Form)
            written.add("result")
        assert known.core is not None


def test_element_types_choose_instructions_or_a_template() -> None:
    lowering = definition("tile.adds").lowering
    assert isinstance(lowering, ByElement)
    assert lowering.chosen(FP32, FP32) is lowering.instructions
    for dtype in (BF16, INT16, UINT8):
        assert lowering.chosen(dtype, dtype) is lowering.template
    cast = definition("tile.cast").lowering
    assert isinstance(cast, ByElement)
    assert cast.chosen(FP32, INT32) is cast.instructions
    assert cast.chosen(FP32, INT16) is cast.template


def test_vector_and_matrix_operations_have_their_core() -> None:
    assert definition("tile.exp").core is CoreType.AIV
    assert definition("tile.matmul").core is CoreType.AIC
    assert definition("tile.load").core is None


@pytest.mark.parametrize(
    ("name", "operands", "result"),
    [
        ("tile.add", [tile(8, 16), tile(8, 16)], ((8, 16), FP32)),
        ("tile.row_sum", [tile(8, 16)], ((8, 1), FP32)),
        ("tile.col_max", [tile(8, 16, FP16)], ((1, 16), FP16)),
        ("tile.row_expand_mul", [tile(8, 16), tile(8, 1)], ((8, 16), FP32)),
        ("tile.col_expand_add", [tile(8, 16), tile(1, 16)], ((8, 16), FP32)),
        ("tile.transpose", [tile(8, 16)], ((16, 8), FP32)),
        (
            "tile.matmul",
            [tile(16, 32, FP16, MemorySpace.Left), tile(32, 64, FP16, MemorySpace.Right)],
            ((16, 64), FP32),
        ),
        (
            "tile.matmul",
            [tile(16, 32, INT8, MemorySpace.Left), tile(32, 64, INT8, MemorySpace.Right)],
            ((16, 64), INT32),
        ),
    ],
)
def test_results_follow_from_operands(name: str, operands: list[Value], result: tuple) -> None:
    type = builder().value(name, operands).type
    assert isinstance(type, TileType)
    assert (type.shape, type.dtype) == result
    assert type.memory is definition(name).result_memory


@pytest.mark.parametrize(
    ("name", "operands", "message"),
    [
        ("tile.add", [tile(8, 16)], "takes 2 operands, got 1"),
        ("tile.add", [tile(8, 16), tile(8, 8)], "needs tiles of one shape"),
        ("tile.add", [tile(8, 16, memory=MemorySpace.Mat), tile(8, 16)], "a stands in Mat, but must stand in Vec"),
        ("tile.exp", [tile(8, 16, INT32)], "a has element type INT32"),
        ("tile.abs", [tile(8, 16, BOOL)], "a has element type BOOL"),
        ("tile.row_expand_sub", [tile(8, 16), tile(8, 16)], "needs a column [8, 1]"),
        ("tile.col_expand_sub", [tile(8, 16), tile(8, 1)], "needs a row [1, 16]"),
        ("tile.adds", [tile(8, 16), Value("s", ScalarType(INT32))], "the scalar is INT32"),
        ("arith.add", [Value("i", ScalarType(INT32)), Value("j", ScalarType(INDEX))], "scalars of one type"),
        ("arith.div", [Value("i", ScalarType(INT32))] * 2, "for whole numbers use //"),
        ("arith.and", [Value("i", ScalarType(INT32))] * 2, "a has element type INT32, but must have one of BOOL"),
        ("tile.nothing", [], "there is no operation tile.nothing"),
    ],
)
def test_wrong_operands_are_refused(name: str, operands: list[Value], message: str) -> None:
    with pytest.raises(IRError, match=message.replace("[", r"\[").replace("*", r"\*")):
        builder().op(name, operands)


def test_attributes_are_checked() -> None:
    a, b = Value("i", ScalarType(INT32)), Value("j", ScalarType(INT32))
    with pytest.raises(IRError, match="misses the attribute pred"):
        builder().op("arith.cmp", [a, b])
    with pytest.raises(IRError, match="attribute pred cannot be 'between'; one of eq, ne"):
        builder().op("arith.cmp", [a, b], {"pred": "between"})
    with pytest.raises(IRError, match="has no attribute colour"):
        builder().op("arith.cmp", [a, b], {"pred": "eq", "colour": 1})
    assert builder().op("arith.cmp", [a, b], {"pred": "eq"}).result.type == ScalarType(BOOL)


def test_float_scalar_beside_half_tile_may_be_single() -> None:
    assert builder().value("tile.muls", [tile(8, 16, FP16), Value("s", ScalarType(FP32))]).type.dtype == FP16


def test_loops_hand_values_on() -> None:
    made, b = function("f", FunctionKind.INCORE, [("n", ScalarType(INDEX))])
    zero = b.full((8, 8), FP32, 0.0)
    with b.loop(0, made.params[0].value, inits=[zero], name="k") as loop:
        loop.carry(b.value("tile.adds", [loop.carried[0], b.constant(1.0)]))
    assert [v.type for v in loop.results] == [zero.type]
    (op,) = [o for o in made.body.ops if o.name == "scf.for"]
    assert op.regions[0].args[0].name == "k"
    assert op.regions[0].ops[-1].name == "scf.yield"


def test_windows_stay_inside_tensors_as_far_as_known() -> None:
    b = builder()
    tensor = Value("a", TensorType((64, DynDim("N")), FP32))
    start = Value("i", ScalarType(INDEX))
    b.load(tensor, [start, 0], (64, 64))
    b.load(tensor, [0, 1000], (64, 64))
    with pytest.raises(IRError, match="axis 0 ends at 65, but the tensor has 64"):
        b.load(tensor, [1, 0], (64, 64))
    with pytest.raises(IRError, match="the offset -1 of axis 0 is negative"):
        b.load(tensor, [-1, 0], (8, 64))
    with pytest.raises(IRError, match="ends at 66"):
        b.view(tensor, [2, 0], [64, 8])
    assert b.view(tensor, [start, 0], [8, start]).type.shape == (8, start)


def test_tensors_of_other_ranks() -> None:
    b = builder()
    b.load(Value("v", TensorType((64,), FP32)), [0], (1, 64))
    b.load(Value("c", TensorType((4, 2, 64, 64), FP32)), [0, 0, 0, 0], (64, 64))
    with pytest.raises(IRError, match="tiles of one row, not 2"):
        b.load(Value("v", TensorType((64,), FP32)), [0], (2, 64))
    with pytest.raises(IRError, match="needs 1 to 5 dimensions"):
        b.create_tensor([1] * 6, FP32)


def test_transposed_loads_swap_the_window() -> None:
    b = builder()
    tensor = Value("a", TensorType((32, 64), FP16))
    assert b.load(tensor, [0, 0], (64, 32), transposed=True).type.shape == (64, 32)
    with pytest.raises(IRError, match="axis 0 ends at 64"):
        b.load(tensor, [0, 0], (64, 32))


def test_differences_are_found_through_arithmetic() -> None:
    b = builder()
    i = Value("i", ScalarType(INDEX))
    n = Value("n", ScalarType(INT64))
    block = b.constant(64)
    start = b.value("arith.mul", [i, block])
    end = b.value("arith.mul", [b.value("arith.add", [i, b.constant(1)]), block])
    assert difference(end, start) == 64
    assert difference(start, end) == -64
    assert difference(start, i) is None

    def rest() -> Value:
        wide = b.value("arith.cast", [n], types=(ScalarType(INDEX),))
        return b.value("arith.min", [b.constant(64), b.value("arith.sub", [wide, start])])

    assert same_value(rest(), rest())
    assert not same_value(rest(), 64)
    assert same_value(b.value("arith.sub", [rest(), rest()]), 0)


def test_long_chains_of_shared_values_are_compared_quickly() -> None:
    b = builder()
    value = other = Value("i", ScalarType(INDEX))
    for _ in range(50):
        value = b.value("arith.min", [value, value])
        other = b.value("arith.min", [other, other])
    for _ in range(50):
        value, other = b.value("arith.add", [value, value]), b.value("arith.add", [other, other])
    assert difference(value, other) == 0
