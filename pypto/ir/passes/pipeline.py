"""The passes from a parsed program to one that code is generated from."""

from __future__ import annotations

from pypto.ir.nodes import Program
from pypto.ir.passes.cleanup import remove_unused
from pypto.ir.passes.core import infer_cores
from pypto.ir.passes.memory import infer_memory
from pypto.ir.passes.mixed import split_mixed
from pypto.ir.passes.outline import outline_scopes
from pypto.ir.passes.tensors import lower_tensors
from pypto.ir.verify import verify


def run(program: Program, backend_type: str = "Ascend910B") -> Program:
    """All passes in order: whole tensors, mixed work, scopes, memories, core types, the verifier; changes ``program``.

    Raises:
        IRError: something does not fit the hardware, with its place.
    """
    remove_unused(program)
    lower_tensors(program, backend_type)
    split_mixed(program)
    outline_scopes(program)
    remove_unused(program)
    # Twice: a mixture of work has to be told before the memories that follow from it make no sense.
    infer_cores(program)
    infer_memory(program)
    infer_cores(program)
    verify(program, backend_type)
    return program
