"""Rewrites of an incore function in front of code generation, on a copy of it.

Products get operands that are loaded the other way round instead of transposed ones. Reductions and expansions of
columns [R, 1], which no instruction takes (templates do), become what they mean: element-wise work, copies, or the same
work on a row.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pypto.codegen.lowering import lowering_of
from pypto.ir.nodes import Block, Function, Op, Value
from pypto.ir.ops.lowering import Template
from pypto.ir.types import TileType
from pypto.ir.values import defining_op


def prepared(function: Function) -> Function:
    """The copy that is printed; see the module's description."""
    copy = _copied(function)
    _transpose_loads(copy.body)
    _drop_unused_loads(copy.body)
    for block in _blocks(copy.body):
        block.ops[:] = [new for op in block.ops for new in _without_columns(op)]
    return copy


def _copied(function: Function) -> Function:
    """A deep copy of the body; parameters and the scalars in types are those of the copy."""
    values: dict[Value, Value] = {p.value: p.value for p in function.params}

    def mapped(value: Value, owner: Op | Block) -> Value:
        type = value.type
        if isinstance(type, TileType):
            valid = tuple(v if isinstance(v, int) else values.get(v, v) for v in type.valid)
            type = replace(type, valid=(valid[0], valid[1]))
        made = Value(value.name, type, owner)
        values[value] = made
        return made

    def block(old: Block) -> Block:
        made = Block()
        made.args = [mapped(a, made) for a in old.args]
        for op in old.ops:
            new = Op(op.name, [values[v] for v in op.operands], [], dict(op.attrs), [], op.loc)
            new.regions = [block(r) for r in op.regions]
            new.results = [mapped(r, new) for r in op.results]
            made.ops.append(new)
        return made

    return replace(function, body=block(function.body))


_KIND = re.compile(r"^tile\.(row|col)_(?P<expand>expand)?")
_ELEMENTWISE = {
    "tile.row_expand_add": "tile.add",
    "tile.row_expand_sub": "tile.sub",
    "tile.row_expand_mul": "tile.mul",
    "tile.row_expand_div": "tile.div",
    "tile.row_expand_max": "tile.maximum",
    "tile.row_expand_min": "tile.minimum",
}


def _without_columns(op: Op) -> list[Op]:
    """The operations that stand for a reduction or expansion of a column; other operations stay."""
    kind = _KIND.match(op.name)
    first = op.operands[0].type if op.operands else None
    if kind is None or not isinstance(first, TileType) or first.shape[1] != 1 or isinstance(lowering_of(op), Template):
        return [op]
    if first.shape[0] == 1:
        # One element: its row and its column are the same.
        op.name = op.name.replace("tile.col", "tile.row")
    if op.name in _ELEMENTWISE:
        op.name = _ELEMENTWISE[op.name]
        return [op]
    if op.name.startswith("tile.row"):
        # One column reduced over itself, or one column in all columns.
        op.name, op.operands = "tile.move", [op.operands[-1]]
        return [op]
    before = _reshaped(op.operands[0], op)
    op.name = op.name.replace("tile.col", "tile.row")
    op.operands[0] = before.result
    if not kind["expand"]:
        return [before, op]
    result = op.result
    inner = Value(result.name, before.result.type, op)
    op.results = [inner]
    after = Op("tile.reshape", [inner], [result], {}, [], op.loc)
    result.owner = after
    return [before, op, after]


def _reshaped(value: Value, op: Op) -> Op:
    """A column as a row."""
    made = Op("tile.reshape", [value], [], {}, [], op.loc)
    made.results = [_swapped(value, made)]
    return made


def _transpose_loads(body: Block) -> None:
    for block in _blocks(body):
        for op in list(block.ops):
            if op.name not in ("tile.matmul", "tile.matmul_acc"):
                continue
            first = 1 if op.name == "tile.matmul_acc" else 0
            for index, attr in ((first, "a_trans"), (first + 1, "b_trans")):
                if op.attrs.pop(attr, False):
                    op.operands[index] = _loaded_transposed(body, op.operands[index], op)


def _loaded_transposed(body: Block, value: Value, user: Op) -> Value:
    """A tile with the axes of ``value`` swapped: loaded right behind the load that ``value`` comes from, if it does."""
    chain: list[Op] = []
    op = defining_op(value)
    while op is not None and op.name == "tile.move":
        chain.append(op)
        op = defining_op(op.operands[0])
    if op is None or op.name != "tile.load":
        return _turned(body, chain[-1].operands[0] if chain else value, chain, user)
    made = Op(
        "tile.load",
        list(op.operands),
        [],
        {**op.attrs, "transposed": not op.attrs.get("transposed", False)},
        [],
        op.loc,
    )
    made.results = [_swapped(op.result, made)]
    _insert_behind(body, op, made)
    result = made.result
    for move in reversed(chain):
        moved = Op("tile.move", [result], [], dict(move.attrs), [], move.loc)
        moved.results = [_swapped(move.result, moved)]
        _insert_behind(body, move, moved)
        result = moved.result
    return result


def _turned(body: Block, value: Value, chain: list[Op], user: Op) -> Value:
    """The transposed tile, made in front of the product that uses it."""
    made = Op("tile.transpose", [value], [], {}, [], user.loc)
    made.results = [_swapped(value, made)]
    ops = [made]
    for move in reversed(chain):
        moved = Op("tile.move", [ops[-1].result], [], dict(move.attrs), [], move.loc)
        moved.results = [_swapped(move.result, moved)]
        ops.append(moved)
    for block in _blocks(body):
        if user in block.ops:
            position = block.ops.index(user)
            block.ops[position:position] = ops
    return ops[-1].result


def _swapped(value: Value, owner: Op) -> Value:
    type = value.type
    if not isinstance(type, TileType):
        raise TypeError(f"{value.name} is no tile")
    return Value(value.name, replace(type, shape=type.shape[::-1], valid=type.valid[::-1]), owner)


def _insert_behind(body: Block, place: Op, made: Op) -> None:
    for block in _blocks(body):
        if place in block.ops:
            block.ops.insert(block.ops.index(place) + 1, made)
            return


def _drop_unused_loads(body: Block) -> None:
    """Loads and moves whose result nobody uses any more."""
    while True:
        used = {v for block in _blocks(body) for op in block.ops for v in op.operands}
        dropped = False
        for block in _blocks(body):
            kept = [o for o in block.ops if o.name not in ("tile.load", "tile.move") or o.result in used]
            dropped |= len(kept) != len(block.ops)
            block.ops[:] = kept
        if not dropped:
            return


def _blocks(body: Block) -> list[Block]:
    return [body, *(region for op in body.walk() for region in op.regions)]
