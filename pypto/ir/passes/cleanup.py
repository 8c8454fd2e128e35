"""Removal of operations whose results nobody uses."""

from __future__ import annotations

from pypto.ir.nodes import Block, Program
from pypto.ir.ops.registry import definition
from pypto.ir.rewrite import all_used, blocks


def remove_unused(program: Program) -> None:
    """Remove pure operations without uses from all functions."""
    for function in program.functions.values():
        while _remove(function.body):
            pass


def _remove(body: Block) -> bool:
    used = all_used(body)
    removed = False
    for block in blocks(body):
        kept = [op for op in block.ops if not definition(op.name).pure or any(id(r) in used for r in op.results)]
        removed |= len(kept) != len(block.ops)
        block.ops = kept
    return removed
