"""The page of all operations, from the table of the package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pypto.ir.errors import IRError
from pypto.ir.nodes import Value
from pypto.ir.ops.lowering import ByElement, Instruction, Template
from pypto.ir.ops.registry import Kind, OpDef, Operand, all_definitions
from pypto.ir.ops.user_names import UserName, user_names
from pypto.ir.ops.vector import ANY, BITS, NUMBER, REAL, WHOLE
from pypto.ir.types import DType, MemorySpace, ScalarType, TileType

_HEAD = """\
# Operations

Written by `tools/op_tables.py` from the registry (`pypto.ir.ops`); do not edit.

What users write, what it becomes, and how that is lowered. Tiles stand in vector memory (Vec) unless another one is
named. An instruction is one of ptoas. *Simulator* means a function template of this package (`pypto/tiles.h`,
`pypto/tile_math.h`); behind it stands the call of PTO-ISA that does the same. A build for a device refuses it and names
the place, since ptoas 0.1.1 cannot print that call. Vector tiles have any shape and valid lengths; beside a tile, a
column `[rows, 1]` or a row `[1, cols]` is repeated. Every supported operation is compared with NumPy in float64
(`tests/integration/ops`, `tests/integration/moving`, matrix work also in `tests/integration/codegen`).

| short for | element types |
| --- | --- |
"""
_SETS: tuple[tuple[str, tuple[DType, ...]], ...] = (
    ("any", ANY),
    ("numbers", NUMBER),
    ("bits", BITS),
    ("whole", WHOLE),
    ("real", REAL),
)
_COLUMNS = "| operation | meaning | operands → result | lowering |\n| --- | --- | --- | --- |\n"
_SECTIONS = {
    "elementwise": "Element by element",
    "reductions": "Reductions, and columns and rows beside tiles",
    "tile_memory": "Making, loading, storing, moving and re-shaping",
    "tile_filling": "Filling, joining, counting, random bits",
    "tile_index": "Gathering, scattering, sorting",
    "tile_matrix": "Matrix work (AIC)",
    "tensor": "Tensors",
    "control_names": "Control and scopes",
}


def page() -> str:
    """The whole page."""
    text = _HEAD + "".join(f"| {name} | {_listed(dtypes)} |\n" for name, dtypes in _SETS)
    entries = _entries()
    families = [*_SECTIONS, *sorted({e.family for e in entries} - set(_SECTIONS))]
    for family in families:
        rows = [entry for entry in entries if entry.family == family]
        if rows:
            text += f"\n## {_SECTIONS.get(family, family)}\n\n{_COLUMNS}"
            text += "".join(_row(entry) for entry in rows)
    return text


def _entries() -> list[UserName]:
    found: dict[int, UserName] = {}
    for space in ("pl", "tile", "tensor"):
        for entry in user_names(space).values():
            found.setdefault(id(entry), entry)
    return list(found.values())


def _row(entry: UserName) -> str:
    prefix = "pl." if "pl" in entry.spaces else f"pl.{entry.spaces[0]}."
    name = f"`{prefix}{entry.name}({entry.parameters})`"
    if "pl" in entry.spaces and "tensor" in entry.spaces:
        name += " also in `pl.tensor`"
    if entry.unsupported:
        return f"| {name} | **not supported**: {entry.unsupported} | | |\n"
    known = [all_definitions()[op] for op in entry.ops or (f"tile.{entry.key}",) if op in all_definitions()]
    operands = "<br>".join(_operands(op, len(known) > 1) for op in known)
    lowering = "<br>".join(dict.fromkeys(part for op in known for part in _lowering(op)))
    return f"| {name} | {_cell(entry.doc)} | {operands or '-'} | {lowering or 'by the parser'} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")


def _operands(op: OpDef, named: bool) -> str:
    shown = ", ".join(_operand(operand) for operand in op.operands) or "-"
    result = _result(op)
    return (f"{op.name}: " if named else "") + shown + (f" → {result}" if result else "")


def _operand(operand: Operand) -> str:
    kind = operand.kind.value if operand.kind is not Kind.ANY else "values"
    more = [_short(operand.dtypes)] if operand.dtypes and operand.kind is Kind.TILE else []
    memory = [m.value for m in operand.memory]
    if memory and memory != ["Vec"]:
        more.append("in " + " or ".join(memory))
    name = f"{operand.name}..." if operand.variadic else operand.name
    return f"{name}: {kind}" + (f" ({', '.join(more)})" if more else "")


def _short(dtypes: Sequence[DType]) -> str:
    for name, known in _SETS:
        if set(dtypes) == set(known):
            return name
    return _listed(dtypes)


def _listed(dtypes: Sequence[DType]) -> str:
    return " ".join(d.name for d in dtypes)


# Sizes that show where a result takes its own from.
_ROWS, _COLS = 32, 64
_SHAPES = {"column": (_ROWS, 1), "row": (1, _COLS)}


def _result(op: OpDef) -> str:
    """Shape and, when it differs, element type of the result, by trying the rule."""
    samples: list[Value] = []
    for operand in op.operands:
        dtype = operand.dtypes[0] if operand.dtypes else samples[0].type.dtype if samples else REAL[0]
        if operand.kind is Kind.TILE:
            shape = _SHAPES.get(operand.name, (_ROWS, _COLS))
            samples.append(Value(operand.name, TileType(shape, dtype, MemorySpace.Vec, shape)))
        elif operand.kind is Kind.SCALAR and samples:
            samples.append(Value(operand.name, ScalarType(samples[0].type.dtype)))
        else:
            return ""
    attrs = {attr.name: attr.choices[0] for attr in op.attrs if attr.choices}
    try:
        (found,) = op.check_call(samples, attrs)
    except (IRError, ValueError, KeyError):
        return ""
    if not isinstance(found, TileType) or not samples:
        return ""
    names = {_ROWS: "rows", _COLS: "cols"}
    sizes = ", ".join(names.get(size, str(size)) for size in found.shape)
    element = "" if found.dtype == samples[0].type.dtype else f" of {found.dtype}"
    return f"[{sizes}]{element}"


def _lowering(op: OpDef) -> Iterator[str]:
    lowering = op.lowering
    if op.name.startswith("arith."):
        yield "scalar: C++"
    elif lowering is None:
        yield "by the code generator"
    elif isinstance(lowering, ByElement):
        pairs = sorted(lowering.native, key=lambda pair: (ANY.index(pair[0]), ANY.index(pair[1])))
        same = [source for source, result in pairs if source == result]
        if len(same) == len(pairs):
            shown = _listed(same)
        else:
            sources = dict.fromkeys(source for source, _ in pairs)
            shown = "; ".join(f"{s} → {_listed([r for q, r in pairs if q == s])}" for s in sources)
        yield f"{_instructions(lowering.instructions)} for {shown}"
        yield "else " + _template(lowering.template)
    elif isinstance(lowering, Template):
        yield _template(lowering)
    else:
        yield _instructions(lowering)


def _instructions(instructions: Sequence[Instruction]) -> str:
    return ", ".join(f"`{i.op}`" + (f" as `{i.rename}`" if i.rename else "") for i in instructions)


def _template(template: Template) -> str:
    name = template.name.replace("pypto::tiles::", "")
    return f"simulator: `{name}`" + (f" ({template.stands_for})" if template.stands_for else "")
