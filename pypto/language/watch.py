"""Whether the outside names of a closure still have the values that it was made with, told without making it again."""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any

from pypto.language.source import BUILTINS, KernelSource, SourceClosure, is_namespace

Check = Callable[[], bool]


class SourceWatch:
    """The values that outside names have when this is made, compared by identity later; containers also by their items.

    As long as nothing changed, `pypto.language.source.collect` gives the closure that it gave.
    """

    def __init__(self, closure: SourceClosure) -> None:
        self._names: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._checks: list[Check] = []
        for function in closure.functions:
            for name in function.kernel.outside_names:
                self._watch(function.kernel, name.path)
        checks = [_same_values(namespace, values) for namespace, values in self._names.values()]
        self._all = (*checks, *self._checks)

    @staticmethod
    def of(closure: SourceClosure) -> SourceWatch | None:
        """The watch of a closure; ``None`` if some of it is in files, which are read anew for every request."""
        if any(function.kernel.parts() for function in closure.functions):
            return None
        try:
            return SourceWatch(closure)
        except (KeyError, AttributeError, ValueError):
            return None  # a name is gone already

    def unchanged(self) -> bool:
        """Whether every name has the value that it had."""
        try:
            return all([check() for check in self._all])
        except (KeyError, AttributeError, ValueError):
            return False

    def _watch(self, kernel: KernelSource, path: tuple[str, ...]) -> None:
        function, root = kernel.function, path[0]
        if root in function.__code__.co_freevars:
            cell = (function.__closure__ or ())[function.__code__.co_freevars.index(root)]
            value = cell.cell_contents
            self._checks.append(lambda: cell.cell_contents is value)
        elif root in function.__globals__:
            value = self._member(function.__globals__, root)
        elif root not in BUILTINS:
            raise KeyError(root)
        else:
            namespace = function.__globals__
            self._checks.append(lambda: root not in namespace)
            return
        for attribute in path[1:]:
            if not is_namespace(value):
                break
            value = self._attribute(value, attribute)
        self._contents(value)

    def _member(self, namespace: dict[str, Any], name: str) -> Any:
        values = self._names.setdefault(id(namespace), (namespace, {}))[1]
        return values.setdefault(name, namespace[name])

    def _attribute(self, owner: Any, name: str) -> Any:
        if type(owner) is types.ModuleType and name in vars(owner):
            return self._member(vars(owner), name)
        value = getattr(owner, name)
        if owner is not math:
            self._checks.append(lambda: getattr(owner, name) is value)
        return value

    def _contents(self, value: Any) -> None:
        """Lists and dictionaries, and what containers hold, can change while the value stays the same object."""
        if isinstance(value, dict):
            table, held = value, dict(value)
            self._checks.append(lambda: list(table) == list(held) and all(table[key] is held[key] for key in held))
            value = tuple(held.values())
        if not isinstance(value, (list, tuple)):
            return
        for item in value:
            self._contents(item)
        if isinstance(value, list):
            items = tuple(value)
            self._checks.append(lambda: len(value) == len(items) and all(map(operator.is_, value, items)))


def _same_values(namespace: dict[str, Any], values: dict[str, Any]) -> Check:
    names: Iterable[str] = values
    # A getter of one name would give its value, not a tuple of it.
    get = operator.itemgetter(*names, next(iter(names)))
    expected = get(values)
    same = operator.is_
    return lambda: all(map(same, get(namespace), expected))
