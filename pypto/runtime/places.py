"""Where in a program something happened: task, operation and source line, from the numbers that native code reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto.runtime.kernel_config import KernelConfig

Locate = Callable[[str, int], tuple[str, int] | None]
"""(function, line counted from its first line = 1) -> (file, line in the file), or None when it is not known."""


@dataclass(frozen=True)
class Place:
    """A place of a run.

    Attributes:
        task: name of the kernel; ``None`` for the orchestration itself.
        op: name of the operation, such as ``tile.store``; ``None`` when unknown.
        function: function that ``line`` counts from; ``None`` when the line is unknown.
        line: line of the operation, else of the task's call; ``None`` when unknown.
        text: all of it for a message.
    """

    task: str | None
    op: str | None
    function: str | None
    line: int | None
    text: str


def find_place(config: KernelConfig, kernel_id: int, op: int, line: int, locate: Locate | None) -> Place:
    """The place of function id, index into the kernel's operations (-1: unknown) and line of the call (0: unknown)."""
    kernel = next((kernel for kernel in config.kernels if kernel.id == kernel_id), None)
    if kernel is None:
        return Place(None, None, None, None, "the orchestration")
    known = kernel.ops[op] if 0 <= op < len(kernel.ops) else None
    text = f"task '{kernel.name}'"
    if known is not None:
        text += f", operation {known.op}"
        return Place(
            kernel.name, known.op, known.function, known.line, text + _line(known.function, known.line, locate)
        )
    if line:
        return Place(kernel.name, None, config.entry, line, text + _line(config.entry, line, locate))
    return Place(kernel.name, None, None, None, text)


def _line(function: str, line: int, locate: Locate | None) -> str:
    found = locate(function, line) if locate else None
    return f" ({function}, line {line})" if found is None else f" ({function}, {found[0]}:{found[1]})"
