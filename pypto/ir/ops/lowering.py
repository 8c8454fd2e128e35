"""How operations are written in ptoas' dialect, as data: `pypto.codegen` interprets it.

An operation either lowers to a few instructions (:class:`Instruction`) that read its operands and write its result, or
is handled by name in code generation (control flow, memory access, scalars) and has no entry here.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from pypto.ir.types import DType


class Form(enum.Enum):
    """How an instruction spells its inputs; each instruction takes only one form."""

    GROUPED = "grouped"  # ins(%a, %b : TA, TB)
    SPLIT = "split"  # ins(%a : TA, %b : TB)
    BARE_SCALAR = "bare_scalar"  # ins(%a : TA, %s)


@dataclass(frozen=True)
class Instruction:
    """One instruction of ptoas.

    Attributes:
        op: name without the dialect, such as ``tadd``.
        ins: names of the inputs: operands of the operation, or ``result`` for what an earlier instruction wrote.
        form: spelling of the inputs.
        scalar: type in which a scalar input is written; ``None``: the element type of the result.
        suffix: text after ``outs(...)``.
        call: name of the call that ptoas prints, when that call has to be renamed.
        rename: what it has to be renamed to: ptoas prints the wrong call, or cannot take the real instruction.
        column: whether a column tile [R, 1] may be used as it is; otherwise it is viewed as [1, R] meanwhile.
    """

    op: str
    ins: tuple[str, ...]
    form: Form = Form.SPLIT
    scalar: DType | None = None
    suffix: str = ""
    call: str | None = None
    rename: str | None = None
    column: bool = True


@dataclass(frozen=True)
class Template:
    """One call of a function template of ours, for what ptoas has no instruction for; the simulator only.

    The results come first among its arguments.

    Attributes:
        name: of the template, in ``pypto/tiles.h``; ``{attribute}`` stands for the value of an attribute.
        ins: what follows the results: names of operands; names of attributes that are numbers; ``<operand>.rows`` and
            ``<operand>.cols``, also of ``result``, for the sizes of a tile without what fills it up.
        stands_for: call of the PTO-ISA that does the same on a device; empty when there is none.
    """

    name: str
    ins: tuple[str, ...]
    stands_for: str = ""


@dataclass(frozen=True)
class ByElement:
    """Instructions for some element types, a template for all others.

    Attributes:
        native: (element type of the first tile operand, element type of the result) that the instructions take.
    """

    native: frozenset[tuple[DType, DType]]
    instructions: tuple[Instruction, ...]
    template: Template

    def chosen(self, source: DType, result: DType) -> tuple[Instruction, ...] | Template:
        """How an operation on these element types is written."""
        return self.instructions if (source, result) in self.native else self.template


Lowering = tuple[Instruction, ...] | Template | ByElement
