"""The passes from a parsed program to one that code is generated from."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir.nodes import Program
from pypto.ir.passes.cleanup import remove_unused
from pypto.ir.passes.core import infer_cores
from pypto.ir.passes.memory import infer_memory
from pypto.ir.passes.mixed import split_mixed
from pypto.ir.passes.outline import outline_scopes
from pypto.ir.passes.tensors import lower_tensors
from pypto.ir.verify import verify

Observer = Callable[[str, Program], None]
"""Shown the program after each pass, with the pass's name. It must not change or keep the program."""


PASSES: tuple[tuple[str, Callable[[Program, str], None]], ...] = (
    ("RemoveUnused", lambda program, _: remove_unused(program)),
    ("LowerTensors", lower_tensors),
    ("SplitMixed", lambda program, _: split_mixed(program)),
    ("OutlineScopes", lambda program, _: outline_scopes(program)),
    ("RemoveUnused", lambda program, _: remove_unused(program)),
    # Twice: a mixture of work has to be told before the memories that follow from it make no sense.
    ("InferCores", lambda program, _: infer_cores(program)),
    ("InferMemory", lambda program, _: infer_memory(program)),
    ("InferCores", lambda program, _: infer_cores(program)),
    ("Verify", verify),
)
"""Name and work of each pass, in order; a pass changes the program in place."""


def run(program: Program, backend_type: str = "Ascend910B", observe: Observer | None = None) -> Program:
    """All passes in order: whole tensors, mixed work, scopes, memories, core types, the verifier; changes ``program``.

    Args:
        observe: shown the program after each pass.

    Raises:
        IRError: something does not fit the hardware, with its place.
    """
    for name, work in PASSES:
        work(program, backend_type)
        if observe is not None:
            observe(name, program)
    return program
