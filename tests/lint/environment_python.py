"""Reads of the environment in Python and Starlark, found in the syntax tree.

Names are resolved by lexical scope: imports, aliases, and string constants of the module that are assigned exactly
once, outside of any control flow. Whatever cannot be resolved is a dynamic read, never nothing. What reflection hides
(`getattr` with a computed name, `exec`) and what libraries read by themselves is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Read:
    """One read: of a variable by its name, or (`name` is None) of a name that only the run knows, or of all of them."""

    line: int
    function: str
    name: str | None


MODULE = "<module>"
"""Function of a read outside of any function."""

OS, ENVIRON, GETENV, EXPAND = "os", "environ", "getenv", "expandvars"
COPY = "copy"
"""A dictionary made of the environment: making it is a dynamic read, and literal keys are looked for in it as well."""

_MEMBERS = {
    "environ": ENVIRON, "environb": ENVIRON, "getenv": GETENV, "getenvb": GETENV, "path": "os.path",
}  # fmt: skip
_OS_MODULES = {"os", "posix"}
_KEYED = {"get", "setdefault", "pop", "__getitem__", "__contains__"}
_WRITES = {"update", "clear", "__setitem__", "__delitem__"}


@dataclass
class _Scope:
    """Names bound in one scope: for each, the expressions or imports that it may stand for."""

    kind: str
    parent: _Scope | None
    bindings: dict[str, list[_Binding]] = field(default_factory=dict)
    elsewhere: dict[str, _Scope] = field(default_factory=dict)
    """Names declared `global` or `nonlocal`, with the scope that they belong to."""

    def bind(self, name: str, binding: _Binding) -> None:
        self.elsewhere.get(name, self).bindings.setdefault(name, []).append(binding)

    def find(self, name: str) -> tuple[_Scope, list[_Binding]] | None:
        """The scope that a name of this scope refers to, with all that is bound to it there."""
        scope: _Scope | None = self.elsewhere.get(name, self)
        first = True
        while scope is not None:
            if name in scope.bindings and (first or scope.kind != "class"):
                return scope, scope.bindings[name]
            scope, first = scope.parent, False
        return None


@dataclass(frozen=True)
class _Binding:
    """What a name is bound to: an expression, or a fixed meaning (of an import), or something unknown."""

    expression: ast.expr | None = None
    meaning: str | None = None
    conditional: bool = False


_UNKNOWN = _Binding()


def python_reads(source: str, filename: str) -> list[Read]:
    """All reads of a module.

    Raises:
        SyntaxError: it cannot be parsed.
    """
    tree = ast.parse(source, filename)
    scopes = _Scopes()
    scopes.module(tree)
    return sorted(_Reads(scopes).run(tree), key=lambda read: (read.line, read.name or ""))


class _Scopes(ast.NodeVisitor):
    """First pass: every scope with its bindings."""

    def __init__(self) -> None:
        self.of: dict[ast.AST, _Scope] = {}
        self._scope = _Scope("module", None)
        self._depth = 0
        """How deep in control flow of the present scope."""

    def module(self, tree: ast.Module) -> None:
        self.of[tree] = self._scope
        self.generic_visit(tree)

    def _enter(self, node: ast.AST, kind: str, children: list[ast.AST], arguments: ast.arguments | None = None) -> None:
        outer, depth = self._scope, self._depth
        self._scope = self.of[node] = _Scope(kind, outer)
        self._depth = 0
        if arguments is not None:
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                self._scope.bind(argument.arg, _UNKNOWN)
            for more in (arguments.vararg, arguments.kwarg):
                if more is not None:
                    self._scope.bind(more.arg, _UNKNOWN)
            defaults = [*arguments.posonlyargs, *arguments.args][::-1]
            for argument, default in zip(defaults, arguments.defaults[::-1], strict=False):
                self._scope.bind(argument.arg, _Binding(default, conditional=True))
            for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
                if value is not None:
                    self._scope.bind(argument.arg, _Binding(value, conditional=True))
        for child in children:
            # `global` and `nonlocal` hold for the whole function, wherever they stand in it.
            for inner in ast.walk(child):
                if isinstance(inner, (ast.Global, ast.Nonlocal)):
                    self._declare(inner)
        for child in children:
            self.visit(child)
        self._scope, self._depth = outer, depth

    def _declare(self, node: ast.Global | ast.Nonlocal) -> None:
        scope = self._scope.parent
        while scope is not None and scope.parent is not None:
            if isinstance(node, ast.Nonlocal) and scope.kind == "function":
                break
            scope = scope.parent
        if scope is not None:
            for name in node.names:
                self._scope.elsewhere[name] = scope

    def _bind(self, name: str, expression: ast.expr | None = None, meaning: str | None = None) -> None:
        foreign = name in self._scope.elsewhere
        self._scope.bind(name, _Binding(expression, meaning, conditional=bool(self._depth) or foreign))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._bind(node.name)
        for outside in (*node.decorator_list, *_outside(node.args)):
            self.visit(outside)
        self._enter(node, "function", list(node.body), node.args)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for outside in _outside(node.args):
            self.visit(outside)
        self._enter(node, "function", [node.body], node.args)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name)
        for outside in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outside)
        self._enter(node, "class", list(node.body))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._enter(node, "function", [*node.generators, *parts])

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.split(".")[0]
            if top in _OS_MODULES:
                self._bind(alias.asname or top, meaning="os.path" if alias.asname and "." in alias.name else OS)
            else:
                self._bind(alias.asname or top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if node.module in _OS_MODULES and not node.level:
                if alias.name == "*":
                    for name, meaning in _MEMBERS.items():
                        self._bind(name, meaning=meaning)
                else:
                    self._bind(alias.asname or alias.name, meaning=_MEMBERS.get(alias.name))
            elif node.module in ("os.path", "posixpath") and alias.name == "expandvars":
                self._bind(alias.asname or alias.name, meaning=EXPAND)
            else:
                self._bind(alias.asname or alias.name)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self._assign(node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._depth += 1
        self._assign(node.target, node.value)
        self._depth -= 1

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)
        self._assign(node.target, None)

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            for index, item in enumerate(target.elts):
                self._assign(item, parts[index] if len(parts) == len(target.elts) else None)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, None)
        else:
            self.visit(target)

    def visit_Name(self, node: ast.Name) -> None:
        # Targets of loops, `with`, `del` and patterns.
        if not isinstance(node.ctx, ast.Load):
            self._bind(node.id)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def _control(self, node: ast.AST) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    visit_If = visit_For = visit_AsyncFor = visit_While = _control
    visit_Try = visit_TryStar = visit_With = visit_AsyncWith = visit_Match = _control


def _outside(arguments: ast.arguments) -> Iterator[ast.expr]:
    """Defaults and annotations: evaluated where the function is defined."""
    yield from arguments.defaults
    yield from (default for default in arguments.kw_defaults if default is not None)


class _Reads:
    """Second pass: every expression that reads the environment."""

    def __init__(self, scopes: _Scopes) -> None:
        self._scopes = scopes
        self._found: list[Read] = []

    def run(self, tree: ast.Module) -> list[Read]:
        self._walk(tree, self._scopes.of[tree], [])
        return self._found

    def _walk(self, node: ast.AST, scope: _Scope, names: list[str]) -> None:
        inside, function = self._scopes.of.get(node, scope), names
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function = [*names, node.name]
        if self._examined(node, scope, names):
            return
        own: list[ast.AST] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own = [*node.decorator_list, *_outside(node.args)]
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.arguments):
                for default in _outside(child):
                    self._walk(default, scope, names)
            elif child in own:
                self._walk(child, scope, names)
            else:
                self._walk(child, inside, function)

    def _examined(self, node: ast.AST, scope: _Scope, names: list[str]) -> bool:
        """Note what a node reads; whether its children have been dealt with."""

        def note(key: ast.expr | None) -> None:
            name = None if key is None else self._text(key, scope)
            self._found.append(Read(getattr(node, "lineno", 0), ".".join(names) or MODULE, name))

        def rest(*nodes: ast.AST | None) -> bool:
            for child in nodes:
                if child is not None:
                    self._walk(child, scope, names)
            return True

        if isinstance(node, ast.Call):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            meaning = self._meaning(node.func, scope)
            if meaning == GETENV:
                note(_first(node, "key"))
                return rest(*arguments)
            if meaning == EXPAND:
                note(None)
                return rest(*arguments)
            if isinstance(node.func, ast.Attribute):
                owner = self._meaning(node.func.value, scope)
                if owner == COPY and node.func.attr in _KEYED and self._is_literal(_first(node, "key"), scope):
                    note(_first(node, "key"))
                    return rest(*arguments)
                if owner == ENVIRON:
                    if node.func.attr in _KEYED:
                        note(_first(node, "key"))
                    elif node.func.attr not in _WRITES:
                        note(None)
                    return rest(*arguments)
                if node.func.attr in ("getenv", "getenvb") and meaning is None:
                    # Starlark: `repository_ctx.getenv`; in Python a module that was reached in another way.
                    note(_first(node, "key"))
                    return rest(node.func.value, *arguments)
            return False
        if isinstance(node, ast.Subscript) and self._meaning(node.value, scope) == ENVIRON:
            if isinstance(node.ctx, ast.Load):
                note(node.slice)
            return rest(node.slice)
        if isinstance(node, ast.Subscript) and self._meaning(node.value, scope) == COPY:
            if isinstance(node.ctx, ast.Load) and self._is_literal(node.slice, scope):
                note(node.slice)
            return rest(node.slice)
        if isinstance(node, ast.AugAssign):
            target = node.target
            if isinstance(target, ast.Subscript) and self._meaning(target.value, scope) == ENVIRON:
                note(target.slice)
                return rest(target.slice, node.value)
            return rest(node.value) if self._meaning(target, scope) == ENVIRON else False
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            if self._meaning(node.comparators[0], scope) == ENVIRON:
                note(node.left)
                return rest(node.left)
            return False
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return rest(*targets, *self._not_aliases(targets, node.value, scope))
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            meaning = self._meaning(node, scope)
            if meaning in (ENVIRON, GETENV, EXPAND):
                note(None)
                return True
        return False

    def _not_aliases(self, targets: list[ast.expr], value: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
        """The parts of an assigned value that are more than another name for a way to the environment.

        The uses of such a name are found by the name.
        """
        (target, *more) = targets
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                yield from self._not_aliases([one, *more], part, scope)
        elif not all(isinstance(one, ast.Name) for one in targets) or self._meaning(value, scope) in (None, COPY):
            yield value

    def _meaning(self, node: ast.expr, scope: _Scope, depth: int = 0) -> str | None:
        """What an expression stands for, if it is a way to the environment. A name that may be one is one."""
        if depth > 20:
            return None
        if isinstance(node, ast.Name):
            found = scope.find(node.id)
            if found is None:
                return None
            for binding in found[1]:
                meaning = binding.meaning
                if meaning is None and binding.expression is not None and binding.expression is not node:
                    meaning = self._meaning(binding.expression, found[0], depth + 1)
                if meaning is not None:
                    return meaning
            return None
        if isinstance(node, ast.Attribute):
            owner = self._meaning(node.value, scope, depth + 1)
            if owner == OS:
                return _MEMBERS.get(node.attr)
            if owner == "os.path":
                return EXPAND if node.attr == "expandvars" else None
            # Starlark: `repository_ctx.os.environ`.
            inner = node.value
            if node.attr == "environ" and isinstance(inner, ast.Attribute) and inner.attr == "os":
                return ENVIRON
            return None
        if isinstance(node, ast.Call):
            return self._call_meaning(node, scope, depth)
        if isinstance(node, ast.NamedExpr):
            return self._meaning(node.value, scope, depth + 1)
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
            meanings = (self._meaning(part, scope, depth + 1) for part in parts)
            return next((meaning for meaning in meanings if meaning is not None), None)
        return None

    def _call_meaning(self, node: ast.Call, scope: _Scope, depth: int) -> str | None:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        copied = node.args if name == "dict" else [node.func.value] if isinstance(node.func, ast.Attribute) else []
        if name in ("dict", "copy") and len(copied) == 1 and self._meaning(copied[0], scope, depth + 1) == ENVIRON:
            return COPY
        literals = [a.value if isinstance(a, ast.Constant) else None for a in node.args]
        if name in ("__import__", "import_module") and literals[:1] and literals[0] in _OS_MODULES:
            return OS
        known = name == "getattr" and len(node.args) > 1 and isinstance(literals[1], str)
        if known and self._meaning(node.args[0], scope, depth + 1) == OS:
            return _MEMBERS.get(str(literals[1]))
        return None

    def _is_literal(self, node: ast.expr | None, scope: _Scope) -> bool:
        return node is not None and self._text(node, scope) is not None

    def _text(self, node: ast.expr, scope: _Scope) -> str | None:
        """The text that an expression always has: a literal, or a constant of the module."""
        if isinstance(node, ast.Constant):
            value = node.value
            return value if isinstance(value, str) else value.decode("latin-1") if isinstance(value, bytes) else None
        if isinstance(node, ast.Name):
            found = scope.find(node.id)
            if found is None or found[0].kind != "module" or len(found[1]) != 1:
                return None
            (binding,) = found[1]
            if isinstance(binding.expression, ast.Constant) and not binding.conditional:
                return self._text(binding.expression, found[0])
        return None


def _first(call: ast.Call, keyword: str) -> ast.expr | None:
    if call.args:
        return None if isinstance(call.args[0], ast.Starred) else call.args[0]
    return next((item.value for item in call.keywords if item.arg == keyword), None)
