"""Groups of tasks: what a part of an entry submits, as one thing that others can wait for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pypto.ir.nodes import Value
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model


@dataclass(frozen=True)
class Terms:
    """What a group waits for besides what follows from the data.

    Attributes:
        deps: tasks that come first in any case.
        gate: one element, a predicate and a number: the tasks only run if it holds when they could start.
    """

    deps: tuple[Value, ...] = ()
    gate: tuple[Value, str, int] | None = None


@contextmanager
def group(frame: Frame, node: ast.AST, terms: Terms, named: bool = False, order: str = "data") -> Iterator[list[Model]]:
    """Operations made meanwhile are one group of tasks.

    Args:
        named: whether somebody needs to know the tasks; they are in the list afterwards.
        order: what orders the tasks of the group among each other, as in ``task.enter``.
    """
    tasks: list[Model] = []
    if not (named or order != "data" or terms.deps or terms.gate):
        yield tasks
        tasks.append(None)
        return
    frame.op("task.enter", list(terms.deps), node, order=order)
    if terms.gate is not None:
        element, pred, number = terms.gate
        frame.op("task.when", [element], node, pred=pred, number=number)
    yield tasks
    tasks.append(frame.op("task.leave", [], node).result)


@contextmanager
def in_order(frame: Frame, node: ast.AST) -> Iterator[None]:
    """What one scope or call becomes: several tasks run one after the other if their data does not order them."""
    with group(frame, node, Terms(), order="serial" if frame.program.untracked else "data"):
        yield


def no_tasks(frame: Frame, node: ast.AST) -> Value:
    """A group without tasks."""
    frame.op("task.enter", [], node, order="data")
    return frame.op("task.leave", [], node).result
