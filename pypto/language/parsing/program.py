"""Parsing an entry and the functions it calls into one program."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace

from pypto.ir.builder import Builder
from pypto.ir.nodes import Block, Direction, Function, FunctionKind, Op, Param, Program, Value
from pypto.ir.types import DType, DynDim, ScalarType, TensorType, TileType, Type
from pypto.language.errors import CompileError, KernelTypeError, TileCodeError
from pypto.language.parsing import scopes
from pypto.language.parsing.block_calls import block_number
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.handing import result_workspace
from pypto.language.parsing.host_calls import check_host, split_device
from pypto.language.parsing.model import Model, ResultsOfNothing, describe, is_tensor
from pypto.language.parsing.splicing import splice
from pypto.language.parsing.statements import Statements
from pypto.language.parsing.window_calls import open_windows, rank_of, type_of_parts, window_argument
from pypto.language.signature import ArgSpec, Signature, SignatureParam
from pypto.language.source import ExternPart, FunctionSource, KernelSource, SourceClosure

# The types of a function's parameters; a run-time dimension of an argument counts as dynamic.
_Key = tuple[int, tuple[Type, ...]]


class ProgramParser:
    """Collects the functions of one program while they are parsed."""

    def __init__(self, closure: SourceClosure, backend_type: str) -> None:
        self.closure = closure
        self.backend_type = backend_type
        self.functions: dict[str, Function] = {}
        self._done: dict[_Key, Function] = {}
        self._chips: dict[_Key, Program] = {}
        self._names: set[str] = set()
        self.untracked = False
        """Whether some accesses order no tasks."""
        self._hidden: dict[str, tuple[str, ...]] = {}
        # The tiles that device kernels return, by the parameters for them.
        self.tiles_of_results: dict[Value, TileType | None] = {}
        # How often a tensor was loaded as a whole, because an operation on tiles took it.
        self.loads_of_tensors = 0
        # The tiles that such tensors became, and where.
        self.taken_whole: list[tuple[Value, Frame, ast.AST]] = []

    def parse(self, arguments: Mapping[str, ArgSpec]) -> Program:
        """Parse the entry for the given arguments."""
        source = self.closure.functions[0]
        kernel = source.kernel
        signature = Signature.of(kernel)
        types = [_entry_type(kernel, p, arguments.get(p.name)) for p in signature.params]
        unknown = [name for name in arguments if name not in {p.name for p in signature.params}]
        if unknown:
            raise kernel.text.error(f"{kernel.name} has no parameter {unknown[0]}", kernel.text.name, KernelTypeError)
        name = self._new_name(kernel.name)
        entry = self._function(source, name, signature, types)
        if kernel.kind is FunctionKind.HOST:
            check_host(entry, lambda message, loc: kernel.text.error(message, loc or kernel.text.name))
        return Program(name, {name: entry, **self.functions}, tuple(self._chips.values()))

    def checkpoint(self) -> tuple[dict[str, Function], dict[_Key, Function], set[str]]:
        """What has been parsed so far, for :meth:`restore`."""
        return dict(self.functions), dict(self._done), set(self._names)

    def restore(self, state: tuple[dict[str, Function], dict[_Key, Function], set[str]]) -> None:
        """Forget the functions that were parsed since."""
        functions, done, names = state
        self.functions, self._done, self._names = dict(functions), dict(done), set(names)

    def call(
        self, frame: Frame, target: KernelSource, args: list[Model], kwargs: dict[str, Model], node: ast.Call
    ) -> Model:
        """Append a call of an incore function; parse it if it is new for these argument types.

        A function that is spliced is parsed at each call.
        """
        signature = Signature.of(target)
        if target.kind is FunctionKind.ORCHESTRATION:
            return self._chip_call(frame, target, args, kwargs, node)
        bound = _bind(frame, target, signature, args, kwargs, node)
        if target.kind is not FunctionKind.INCORE:
            return splice(frame, target, bound, node)
        operands: list[Value] = []
        types: list[Type] = []
        for param, (model, place) in zip(signature.params, bound, strict=True):
            value, type = _argument(frame, target, param, model, place)
            operands.append(value)
            types.append(type)
        parts = target.parts()
        if parts:
            if any(param.window for param in signature.params):
                raise frame.error(f"{target.name} is hand-written; such kernels take tensors, not windows", node)
            for part in parts:
                name = self._extern(target, part, signature, types).name
                frame.op("func.call", operands, node, callee=name)
            pairs = zip(signature.params, operands, strict=True)
            return ResultsOfNothing(target.name, tuple(v for p, v in pairs if p.direction is not Direction.In))
        key = (id(target), tuple(types))
        function = self._done.get(key)
        if function is None:
            failure: CompileError | None = None
            try:
                function, fits = self._incore(target, signature, types)
            except CompileError as error:
                failure = error
            if failure is not None and not failure.divisible:
                raise failure
            if failure is not None or not fits:
                try:
                    return self._divided(frame, target, bound, node)
                except CompileError as error:
                    # Where it names tiles, what is wrong with them says more; the passes say what does not fit.
                    if failure is not None:
                        raise (failure if isinstance(error, TileCodeError) else error) from None
            if function is None:
                raise TypeError(f"{target.name} was not parsed")
            self._done[key] = self.functions[function.name] = function
        hidden = [frame.index(_hidden_number(frame, what), node, what) for what in self._hidden.get(function.name, ())]
        given = len(operands) + len(hidden)
        made = [result_workspace(frame, param.value, node) for param in function.params[given:]]
        frame.op("func.call", [*operands, *hidden, *made], node, callee=function.name)
        # The caller's own models: where a window was given, its operand is all ranks' parts.
        own = [model for model, _ in bound]
        results = tuple([*own, *hidden, *made][index] for index in function.returns)
        if not results:
            return ResultsOfNothing(target.name)
        return results[0] if len(results) == 1 else results

    def _chip_call(
        self, frame: Frame, target: KernelSource, args: list[Model], kwargs: dict[str, Model], node: ast.Call
    ) -> Model:
        """Append a call of a chip's program on a rank; parse the program if it is new for these argument types."""
        rank, rest = split_device(frame, target.name, kwargs, node)
        signature = Signature.of(target)
        bound = _bind(frame, target, signature, args, kwargs, rest)
        operands: list[Value] = []
        types: list[Type] = []
        for param, (model, place) in zip(signature.params, bound, strict=True):
            value, type = _argument(frame, target, param, model, place, late=True)
            operands.append(value)
            # Where a tensor comes from does not matter to a chip.
            types.append(replace(type, is_view=False) if isinstance(type, TensorType) else type)
        key = (id(target), tuple(types))
        chip = self._chips.get(key)
        if chip is None:
            given = {p.name: _given(type) for p, type in zip(signature.params, types, strict=True)}
            chip = ProgramParser(self.closure.within(target), self.backend_type).parse(given)
            self._chips[key] = chip
        number = list(self._chips).index(key)
        windows = tuple(index for index, param in enumerate(signature.params) if param.window)
        frame.op("host.call", [rank, *operands], node, chip=number, callee=target.name, windows=windows)
        results = tuple(operands[index] for index in chip.entry_function.returns)
        if not results:
            return ResultsOfNothing(target.name)
        return results[0] if len(results) == 1 else results

    def _incore(self, target: KernelSource, signature: Signature, types: list[Type]) -> tuple[Function, bool]:
        """The function for these argument types, and whether its tiles are sure to fit on chip."""
        loads = self.loads_of_tensors
        function = self._function(self.closure.of(target), self._new_name(target.name), signature, types)
        body = Block([], function.body.ops[:-1])
        fit = scopes.Fit.YES if self.loads_of_tensors == loads else scopes.fits(body, self.backend_type)
        return function, fit is scopes.Fit.YES

    def _divided(self, frame: Frame, target: KernelSource, bound: list[tuple[Model, ast.AST]], node: ast.Call) -> Model:
        """An incore function whose tensors do not fit on chip: work on whole tensors in place of the call."""
        block = Block()
        with frame.builder.inside(block):
            result = splice(frame, target, bound, node, whole=True)
        frame.builder.block.ops.extend(block.ops)
        return result

    def _extern(self, kernel: KernelSource, part: ExternPart, signature: Signature, types: list[Type]) -> Function:
        """The function of hand-written code for these argument types; it has no body."""
        key = (id(part), tuple(types))
        function = self._done.get(key)
        if function is None:
            _check_stub(kernel)
            name = self._new_name(kernel.name + part.suffix)
            loc = kernel.text.loc(kernel.text.name)
            body = Block([], [Op("scf.return", [], [], {}, [], loc)])
            params = [
                Param(Value(p.name, type, body), p.direction) for p, type in zip(signature.params, types, strict=True)
            ]
            function = Function(name, kernel.kind, params, body, part.core, loc=loc, extern=part.code)
            self.functions[name] = self._done[key] = function
        return function

    def _new_name(self, name: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_]", "_", name)
        candidate, number = base, 2
        while candidate in self._names:
            candidate, number = f"{base}_{number}", number + 1
        self._names.add(candidate)
        return candidate

    def _function(self, source: FunctionSource, name: str, signature: Signature, types: list[Type]) -> Function:
        kernel = source.kernel
        body = Block()
        params = [
            Param(
                Value(p.name, type_of_parts(type) if p.window and isinstance(type, TensorType) else type, body),
                p.direction,
            )
            for p, type in zip(signature.params, types, strict=True)
        ]
        loc = kernel.text.loc(kernel.text.name)
        function = Function(name, kernel.kind, params, body, loc=loc)
        frame = Frame(self, source, function, Builder(body, loc))
        frame.env.update({p.name: p.value for p in params})
        open_windows(frame, signature)
        function.returns = Statements(frame, kernel.text.node.body).parse()
        self._hidden[name] = tuple(frame.hidden)
        return function


def _hidden_number(frame: Frame, what: str) -> Model:
    return rank_of(frame) if what == "rank" else block_number(frame, what)


def _given(type: Type) -> ArgSpec:
    """What an entry is compiled for, of one parameter."""
    if isinstance(type, TensorType):
        return ArgSpec(type.dtype, tuple(dim for dim in type.shape if not isinstance(dim, Value)))
    return ArgSpec(type.dtype)


def _check_stub(kernel: KernelSource) -> None:
    body = kernel.text.node.body
    if ast.get_docstring(kernel.text.node) is not None:
        body = body[1:]
    ellipsis = len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    if not ellipsis or body[0].value.value is not ...:  # type: ignore[attr-defined]
        raise kernel.text.error(
            f"{kernel.name} stands for hand-written C++, so its body must be `...`", (body or [kernel.text.node])[0]
        )


def _entry_type(kernel: KernelSource, param: SignatureParam, given: ArgSpec | None) -> Type:
    def wrong(message: str) -> Exception:
        return kernel.text.error(
            f"argument {param.name}: {message}", kernel.text.parameter(param.name), KernelTypeError
        )

    if not param.is_tensor:
        if given is not None and given.shape is not None:
            raise wrong("a scalar is expected, not a tensor")
        return ScalarType(param.dtype) if param.dtype is not None else _missing(wrong("needs a dtype"))
    if given is None:
        if param.shape is None or param.dtype is None:
            raise wrong("its shape and dtype are needed; annotate them or give a sample")
        return TensorType(param.shape, param.dtype)
    if given.shape is None:
        raise wrong("a tensor is expected, not a scalar")
    return _checked(param, given.shape, given.dtype, wrong)


def _missing(error: Exception) -> ScalarType:
    raise error


def _checked(param: SignatureParam, shape: tuple[int | DynDim, ...], dtype: DType, wrong: object) -> TensorType:
    """The type of a tensor argument; what is annotated must fit, and an annotated dynamic dimension stays dynamic."""
    make_error = wrong if callable(wrong) else TypeError
    if param.dtype is not None and dtype != param.dtype:
        raise make_error(f"is {dtype}, but is annotated as {param.dtype}")
    if param.shape is None:
        return TensorType(shape, dtype)
    if len(shape) != len(param.shape):
        raise make_error(f"has {len(shape)} dimensions, but is annotated with {len(param.shape)}")
    dims: list[int | DynDim] = []
    for axis, (size, annotated) in enumerate(zip(shape, param.shape, strict=True)):
        if isinstance(annotated, int) and size != annotated:
            raise make_error(f"axis {axis} is {size}, but is annotated as {annotated}")
        dims.append(annotated)
    return TensorType(tuple(dims), dtype)


def _bind(
    frame: Frame,
    target: KernelSource,
    signature: Signature,
    args: list[Model],
    kwargs: dict[str, Model],
    node: ast.Call,
) -> list[tuple[Model, ast.AST]]:
    names = [p.name for p in signature.params]
    form = f"{target.name}({', '.join(names)})"
    if len(args) > len(names):
        raise frame.error(f"{target.name} takes {len(names)} arguments, got {len(args)}: {form}", node)
    spread = any(isinstance(arg, ast.Starred) for arg in node.args)
    places: dict[str, ast.AST] = dict(zip(names, [node] * len(args) if spread else node.args, strict=False))
    models: dict[str, Model] = dict(zip(names, args, strict=False))
    for keyword in node.keywords:
        name = keyword.arg or ""
        if name not in names:
            raise frame.error(f"{target.name} has no parameter {name}: {form}", keyword)
        if name in models:
            raise frame.error(f"{target.name} got {name} twice", keyword)
        models[name], places[name] = kwargs[name], keyword.value
    for param in signature.params:
        if param.name not in models:
            if not param.has_default:
                raise frame.error(f"{target.name} misses the argument {param.name}: {form}", node)
            models[param.name], places[param.name] = param.default, node
    return [(models[name], places[name]) for name in names]


def _argument(
    frame: Frame, target: KernelSource, param: SignatureParam, model: Model, place: ast.AST, late: bool = False
) -> tuple[Value, Type]:
    """An argument of a call, and the type of the parameter in the called function.

    Args:
        late: whether sizes that are not known now are compared with the annotated ones when the call is made.
    """
    what = f"{target.name}: {param.name}"
    if not param.is_tensor:
        dtype = param.dtype
        if dtype is None or is_tensor(model):
            raise frame.error(f"{what} must be a scalar, not {describe(model)}", place)
        if dtype.is_float and isinstance(model, int) and not isinstance(model, bool):
            model = float(model)
        return frame.scalar(model, dtype, place, what), ScalarType(dtype)
    if not is_tensor(model):
        raise frame.error(f"{what} must be a tensor, not {describe(model)}", place)
    operand = window_argument(frame, model, what, place) if param.window else model
    given = model.type
    # A size that only the caller knows is read from the argument.
    shape = tuple(
        DynDim(f"{param.name}_{axis}") if isinstance(dim, Value) else dim for axis, dim in enumerate(given.shape)
    )
    if late and param.shape is not None and len(param.shape) == len(shape):
        shape = tuple(dim if isinstance(dim, int) else own for dim, own in zip(shape, param.shape, strict=True))

    def wrong(message: str) -> Exception:
        return frame.error(f"{what} {message}", place)

    type = _checked(param, shape, given.dtype, wrong)
    if param.direction is not Direction.In:
        frame.check_writes(model, place)
    return operand, TensorType(type.shape, type.dtype, given.is_view and not param.window)
