"""Kernels for a device: linked programs whose code is loaded by the NPU's driver."""

from __future__ import annotations

from pypto.runtime.elf import NotAProgram, ProgramFacts, read_program
from pypto.runtime.errors import LoadError

ENTRY = "kernel_entry"


def check_device_kernel(path: str, data: bytes) -> ProgramFacts:
    """Check that bytes are a linked program with code and the entry ``kernel_entry``.

    Raises:
        LoadError: they are not; ``path`` names them.
    """
    try:
        facts = read_program(data)
    except NotAProgram as error:
        raise LoadError(f"{path} is no linked kernel: {error}") from None
    if ENTRY not in facts.symbols:
        raise LoadError(f"{path} does not define {ENTRY}")
    if not facts.text_size:
        raise LoadError(f"{path} has no code")
    return facts
