"""Arguments of calls of the language's operations, by parameter name."""

from __future__ import annotations

import ast
import difflib
import inspect
from dataclasses import dataclass, field

from pypto.language.parsing.frame import Frame
from pypto.language.parsing.model import Model, ResultsOfNothing, describe
from pypto.language.stubs import Operation


@dataclass(frozen=True)
class Bound:
    """The arguments of one call by parameter name, defaults filled in.

    Attributes:
        given: parameters that the call names or that have a position in it.
        aliases: other names that the call used: name to parameter.
    """

    label: str
    models: dict[str, Model]
    given: frozenset[str]
    node: ast.Call
    aliases: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Model:
        return self.models[name]

    def place(self, name: str) -> ast.AST:
        """Where an argument was written; the whole call when it was left out."""
        for keyword in self.node.keywords:
            if name in (keyword.arg, self.aliases.get(keyword.arg or "")):
                return keyword.value
        position = list(self.models).index(name)
        return self.node.args[position] if position < len(self.node.args) else self.node


def bind(frame: Frame, operation: Operation, args: list[Model], kwargs: dict[str, Model], node: ast.Call) -> Bound:
    """Match arguments with the operation's parameters; refuse unknown, missing and repeated ones."""
    label = f"pl.{operation.name}"
    parameters = list(operation.signature.parameters.values())
    positional = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    form = f"{label}({', '.join(_shown(p) for p in parameters)})"
    if len(args) > len(positional):
        raise frame.error(f"{label} takes {len(positional)} positional arguments, got {len(args)}: {form}", node)
    models: dict[str, Model] = dict(zip((p.name for p in positional), args, strict=False))
    by_name = {p.name: p for p in parameters}
    aliases: dict[str, str] = {}
    for keyword in node.keywords:
        name = written = keyword.arg or ""
        if name not in by_name and name in operation.also:
            name = aliases[name] = parameters[operation.also[name]].name
        if name not in by_name:
            near = difflib.get_close_matches(name, by_name, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise frame.error(f"{label} has no parameter {name}{hint}", keyword)
        if name in models:
            raise frame.error(f"{label} got {name} twice", keyword)
        models[name] = kwargs[written]
    given = frozenset(models)
    ordered: dict[str, Model] = {}
    for parameter in parameters:
        if parameter.name in models:
            ordered[parameter.name] = models[parameter.name]
        elif parameter.default is not inspect.Parameter.empty:
            ordered[parameter.name] = parameter.default
        else:
            raise frame.error(f"{label} misses the argument {parameter.name}: {form}", node)
    for name, model in ordered.items():
        if isinstance(model, ResultsOfNothing):
            raise frame.error(f"{label}: {name} is {describe(model)}", node)
    return Bound(label, ordered, given, node, aliases)


def _shown(parameter: inspect.Parameter) -> str:
    return parameter.name if parameter.default is inspect.Parameter.empty else f"{parameter.name}=..."
