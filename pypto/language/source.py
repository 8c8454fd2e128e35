"""The source of kernels: texts, the outside names they resolve, and the closure of an entry.

The text of a function is exactly its lines in the file, from its first decorator to its last line, with LF newlines and
its own indentation. It is read when the function is decorated, so a file that is edited later does not change what a
live function means; the values of outside names are read anew by every :func:`collect`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import linecache
import math
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pypto.ir.nodes import CoreType, ExternSource, FunctionKind
from pypto.ir.types import DType, DynDim
from pypto.language.errors import CompileError, KernelNameError
from pypto.language.scan import OutsideName, scan
from pypto.language.source_text import SourceText, locate
from pypto.language.stubs import Operation, operations


@dataclass(frozen=True)
class ExternPart:
    """The hand-written code of a function for one core.

    Attributes:
        suffix: what its kernel's name has behind the function's.
    """

    suffix: str
    core: CoreType
    code: ExternSource


class KernelSource:
    """A Python function that is compiled from its source.

    Attributes:
        function: the live function; it is never called.
        kind: what it is for.
        options: plain options of its decorator; they take part in the source digest.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        kind: FunctionKind,
        options: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"only plain Python functions can be compiled, not {type(function).__name__}")
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        self.function: types.FunctionType = function
        self.kind = kind
        self.options = dict(options or {})
        filename = function.__code__.co_filename
        linecache.checkcache(filename)
        self._module_lines = linecache.getlines(filename, function.__globals__)

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.function.__name__

    @property
    def qualname(self) -> str:
        """Qualified name, without the module."""
        return self.function.__qualname__

    @property
    def filename(self) -> str:
        """File of the live function, for display only."""
        return self.function.__code__.co_filename

    @functools.cached_property
    def text(self) -> SourceText:
        """The source text and its syntax tree.

        Raises:
            KernelSyntaxError: the source cannot be found.
        """
        return locate(self.function, self._module_lines)

    def parts(self) -> tuple[ExternPart, ...]:
        """Hand-written code in place of the body, one part for each core; always the same objects, none in general."""
        return ()

    def captured(self) -> dict[str, Any]:
        """Further values that the source digest covers, read now."""
        return {}

    @functools.cached_property
    def outside_names(self) -> tuple[OutsideName, ...]:
        """Outside names in order of first use; also refuses Python that is not part of the language."""
        return scan(self.text.node, self.text.error, self._refuse_unsupported)

    def _refuse_unsupported(self, name: OutsideName) -> None:
        """That an operation is not supported says more than what is wrong with its arguments."""
        try:
            _, value = _resolve(self, name)
        except CompileError:
            return
        if isinstance(value, Operation) and value.unsupported:
            raise _unsupported_operation(self, name, value)

    def __repr__(self) -> str:
        return f"<{self.kind.value} {self.qualname}>"


@dataclass(frozen=True)
class FunctionSource:
    """One function of a closure with the values its outside names had when the closure was made."""

    kernel: KernelSource
    values: Mapping[str, Any]


@dataclass(frozen=True)
class SourceClosure:
    """An entry and every function it reaches, entry first, then in order of first use.

    The parser resolves outside names only through this object: what it does not hold cannot influence a kernel.
    """

    functions: tuple[FunctionSource, ...]

    @property
    def entry(self) -> KernelSource:
        """The entry."""
        return self.functions[0].kernel

    def of(self, kernel: KernelSource) -> FunctionSource:
        """The function of this closure that was made from ``kernel``."""
        for function in self.functions:
            if function.kernel is kernel:
                return function
        raise KeyError(kernel.qualname)

    def within(self, kernel: KernelSource) -> SourceClosure:
        """The part of this closure that an entry of it reaches, that entry first."""
        found: dict[int, FunctionSource] = {}

        def visit(function: FunctionSource) -> None:
            found[id(function.kernel)] = function
            for value in _every(function.values.values()):
                if _reaches(value, kernel) and id(value) not in found:
                    visit(self.of(value))

        visit(self.of(kernel))
        return SourceClosure(tuple(found.values()))

    def record(self) -> dict[str, Any]:
        """Plain data for the source digest: strings, integers, booleans, lists and dictionaries only.

        Holds qualified names, texts, signatures and typed values; no module name, path or absolute line.
        """
        from pypto.language.signature import Signature

        order = {id(f.kernel): index for index, f in enumerate(self.functions)}
        functions = []
        for function in self.functions:
            kernel = function.kernel
            functions.append(
                {
                    "name": kernel.qualname,
                    "kind": kernel.kind.value,
                    "options": {name: kernel.options[name] for name in sorted(kernel.options)},
                    "signature": Signature.of(kernel).record(),
                    "text": kernel.text.text,
                    "values": [[name, _value_record(value, order)] for name, value in function.values.items()],
                }
            )
        return {"functions": functions}


def collect(entry: KernelSource) -> SourceClosure:
    """The closure of an entry, with the values that outside names have now.

    Raises:
        CompileError: a name is not defined, or has a value of a type that cannot enter a kernel.
    """
    done: dict[int, FunctionSource] = {}
    _visit(entry, done, entry)
    return SourceClosure(tuple(done.values()))


def _visit(kernel: KernelSource, done: dict[int, FunctionSource], entry: KernelSource) -> None:
    values: dict[str, Any] = {}
    done[id(kernel)] = FunctionSource(kernel, values)
    for name in kernel.outside_names:
        path, value = _resolve(kernel, name)
        key = ".".join(path)
        if key not in values:
            values[key] = _snapshot(kernel, name, key, value)
    values.update(kernel.captured())
    for value in _every(list(values.values())):
        if _reaches(value, entry) and id(value) not in done:
            _visit(value, done, entry)


def _every(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and what tuples and dictionaries among them hold."""
    for value in values:
        if isinstance(value, tuple):
            yield from _every(value)
        elif isinstance(value, Table):
            yield from _every(held for _, held in value.items)
        else:
            yield value


def _reaches(value: Any, entry: KernelSource) -> bool:
    """Whether a value is a function that is compiled with an entry: only HOST entries call other entries."""
    if not isinstance(value, KernelSource) or value.kind is FunctionKind.HOST:
        return False
    return value.kind is not FunctionKind.ORCHESTRATION or entry.kind is FunctionKind.HOST


# fmt: off
BUILTINS = frozenset(
    {
        "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "int", "isinstance", "len",
        "list", "map", "max", "min", "pow", "print", "range", "reversed", "round", "set", "sorted", "str", "sum",
        "tuple", "type", "zip",
    }
)
# fmt: on


@dataclass(frozen=True)
class Builtin:
    """A builtin function of Python, which the language may refuse with advice."""

    name: str


@dataclass(frozen=True)
class Table:
    """A dictionary as it was when the closure was made: keys and values."""

    items: tuple[tuple[Any, Any], ...]

    def get(self, key: Any) -> Any:
        """The value of a key of exactly this type.

        Raises:
            KeyError: there is none.
        """
        for known, value in self.items:
            if type(known) is type(key) and known == key:
                return value
        raise KeyError(key)


@dataclass(frozen=True)
class MathFunction:
    """A function of Python's ``math``, computed while compiling."""

    name: str

    def __call__(self, *numbers: float) -> float:
        result: float = getattr(math, self.name)(*numbers)
        return result


# One object for each name, since equal requests are recognised by the identity of their values.
_builtin = functools.cache(Builtin)
_math_function = functools.cache(MathFunction)


def is_namespace(value: object) -> bool:
    """Whether a dotted name goes on into a value: modules, classes and their constants, data classes, enumerations."""
    if isinstance(value, (types.ModuleType, types.SimpleNamespace)):
        return True
    if isinstance(value, type):
        return issubclass(value, enum.Enum) or not value.__module__.startswith("pypto.")
    if isinstance(value, tuple):
        return hasattr(value, "_fields")
    own = type(value).__module__.startswith("pypto.")
    return not own and (isinstance(value, enum.Enum) or dataclasses.is_dataclass(value))


def _resolve(kernel: KernelSource, name: OutsideName) -> tuple[tuple[str, ...], Any]:
    """The longest part of a dotted name that names a value, and that value."""
    function = kernel.function
    root = name.path[0]
    if root in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(root)]
        try:
            value = cell.cell_contents
        except ValueError:
            raise kernel.text.error(
                f"{root} has no value yet; define it before the kernel is used", name.node, KernelNameError
            ) from None
    elif root in function.__globals__:
        value = function.__globals__[root]
    elif root in BUILTINS:
        return (root,), _builtin(root)
    else:
        raise _undefined(kernel, name, root)
    length = 1
    while length < len(name.path) and is_namespace(value):
        attribute = name.path[length]
        try:
            found = getattr(value, attribute)
        except AttributeError:
            raise _no_member(kernel, name, length, value) from None
        if value is math and isinstance(found, types.BuiltinFunctionType):
            found = _math_function(attribute)
        value = found
        length += 1
    return name.path[:length], value


def _undefined(kernel: KernelSource, name: OutsideName, root: str) -> CompileError:
    import difflib

    known = [*kernel.function.__code__.co_varnames, *kernel.function.__globals__, *kernel.function.__code__.co_freevars]
    near = difflib.get_close_matches(root, [k for k in known if not k.startswith("__")], n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return kernel.text.error(f"{root} is not defined{hint}", name.node, KernelNameError)


def _no_member(kernel: KernelSource, name: OutsideName, length: int, owner: Any) -> CompileError:
    import difflib

    path, member = ".".join(name.path[:length]), name.path[length]
    if getattr(owner, "__name__", "").startswith("pypto.language.") and length > 1 and member in operations("pl"):
        other = ".".join((*name.path[: length - 1], member))
        return kernel.text.error(f"{path} has no {member}; it is {other}", name.node, KernelNameError)
    near = difflib.get_close_matches(member, [m for m in dir(owner) if not m.startswith("_")], n=1)
    hint = f"; did you mean {path}.{near[0]}?" if near else ""
    return kernel.text.error(f"{path} has no {member}{hint}", name.node, KernelNameError)


def _snapshot(kernel: KernelSource, name: OutsideName, key: str, value: Any) -> Any:
    """The value as the parser will see it: lists are frozen, so that later changes cannot enter a program."""
    if isinstance(value, (list, tuple)):
        return tuple(_snapshot(kernel, name, f"{key}[{index}]", item) for index, item in enumerate(value))
    if isinstance(value, dict):
        keys = (_snapshot(kernel, name, f"a key of {key}", item) for item in value)
        items = (_snapshot(kernel, name, f"{key}[{at!r}]", item) for at, item in value.items())
        return Table(tuple(zip(keys, items, strict=True)))
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, Operation) and value.unsupported:
        raise _unsupported_operation(kernel, name, value)
    if value is None or isinstance(value, (bool, DType, DynDim, KernelSource, Operation, Builtin, MathFunction)):
        return value
    if isinstance(value, enum.Enum) and type(value).__module__.startswith("pypto."):
        return value
    for plain in (int, float, str):
        if isinstance(value, plain):
            return plain(value.value if isinstance(value, enum.Enum) else value)
    raise kernel.text.error(_unsupported(key, value), name.node, KernelNameError)


def _unsupported_operation(kernel: KernelSource, name: OutsideName, value: Operation) -> CompileError:
    return kernel.text.error(f"pl.{value.name} is not supported: {value.unsupported}", name.node, KernelNameError)


def _unsupported(key: str, value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return f"{key} is a module; name something inside it"
    if isinstance(value, types.FunctionType):
        return (
            f"{key} is a plain Python function; decorate it with @pl.jit.inline or @pl.jit.incore to call it from a "
            "kernel"
        )
    module = type(value).__module__
    type_name = type(value).__qualname__ if module == "builtins" else f"{module}.{type(value).__qualname__}"
    advice = f"; use {key}.value" if isinstance(value, enum.Enum) else _namesake(key)
    return (
        f"{key} has a value of type {type_name}, which cannot enter a kernel; allowed are int, float, bool, str, None, "
        f"dtypes, enums of pypto.language, tuples, lists and dictionaries of them, and functions under @pl.jit{advice}"
    )


def _namesake(key: str) -> str:
    """Advice for ``np.exp``: the operation of the language with the same name."""
    name = key.rpartition(".")[2]
    return f"; use pl.{name}" if name in operations("pl") else ""


def _value_record(value: Any, order: Mapping[int, int]) -> list[Any]:
    if value is None:
        return ["none"]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, str):
        return ["str", value]
    if isinstance(value, tuple):
        return ["tuple", [_value_record(item, order) for item in value]]
    if isinstance(value, Table):
        return ["dict", [[_value_record(part, order) for part in item] for item in value.items]]
    if isinstance(value, DType):
        return ["dtype", value.name]
    if isinstance(value, DynDim):
        return ["dynamic", value.name]
    if isinstance(value, enum.Enum):
        return ["enum", type(value).__name__, value.name]
    if isinstance(value, Operation):
        return ["operation", value.name]
    if isinstance(value, Builtin):
        return ["builtin", value.name]
    if isinstance(value, MathFunction):
        return ["math", value.name]
    if isinstance(value, KernelSource):
        position = order.get(id(value))
        return ["entry", value.qualname] if position is None else ["function", position]
    raise TypeError(f"no record for {type(value).__name__}")
