"""Statements of a kernel: assignments, loops, conditions, scopes, returns."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from pypto.ir.nodes import Block, Direction, FunctionKind, Value
from pypto.ir.ops.registry import definition
from pypto.ir.types import FP32, TensorType, TileType, Type
from pypto.ir.values import defining_op, length_text, named_length, same_value
from pypto.language.parsing import arrays, elements, handing, known_values, lanes, loops, tasks
from pypto.language.parsing.expressions import condition_value, evaluate, lookup, window
from pypto.language.parsing.frame import Frame
from pypto.language.parsing.groups import no_tasks
from pypto.language.parsing.liveness import Liveness, stored_names
from pypto.language.parsing.model import (
    Model,
    ResultsOfNothing,
    Unusable,
    describe,
    is_number,
    is_scalar,
    is_tasks,
    is_tensor,
    is_tile,
    same_type,
    valid_text,
)
from pypto.language.parsing.structure import structured
from pypto.language.scan import TOO_DEEP


class Statements:
    """Parses the statements of one function into its frame."""

    def __init__(self, frame: Frame, body: Sequence[ast.stmt]) -> None:
        self.frame = frame
        self.body = structured(body, frame.syntax_error)
        self.live = Liveness(self.body)
        self.leading = known_values.leading(self.body)

    def parse(self) -> tuple[int, ...]:
        """Parse the body; return the indices of the parameters that the function returns."""
        body = list(self.body)
        returned: tuple[int, ...] = ()
        last = body[-1]
        if isinstance(last, ast.Return):
            self.block(body[:-1])
            returned = self._return(last)
        else:
            self.block(body)
        with self.frame.at(self.body[-1]):
            self.frame.builder.op("scf.return")
        return returned

    def parse_spliced(self) -> Model:
        """Parse the body as part of its caller; return what it returns, ``None`` when that is nothing."""
        last = self.body[-1]
        if not isinstance(last, ast.Return):
            self.block(self.body)
            return None
        self.block(self.body[:-1])
        return None if last.value is None else self.value(last.value)

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Parse statements in order."""
        for statement in statements:
            try:
                self.statement(statement)
            except RecursionError:
                raise self.frame.syntax_error(TOO_DEEP, statement) from None

    def statement(self, node: ast.stmt) -> None:
        """Parse one statement."""
        if isinstance(node, ast.Expr):
            self._expression(node)
        elif isinstance(node, ast.Assign):
            model = self.value(node.value)
            for target in node.targets:
                self.assign(target, model, node)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                model = self.value(node.value)
                if isinstance(node.target, ast.Name):
                    known_values.check_annotation(self.frame, node.target.id, node.annotation, model, node.annotation)
                self.assign(node.target, model, node)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node)
        elif isinstance(node, ast.For):
            loops.parse_for(self, node)
        elif isinstance(node, ast.While):
            loops.parse_while(self, node)
        elif isinstance(node, ast.If):
            self._if(node)
        elif isinstance(node, ast.With):
            tasks.parse_with(self, node)
        elif isinstance(node, ast.Assert):
            self._assert(node)
        elif isinstance(node, ast.Delete):
            self._delete(node)

    # Assignments

    def value(self, node: ast.expr) -> Model:
        """What an expression stands for, which must be something."""
        model = evaluate(self.frame, node)
        if isinstance(model, ResultsOfNothing):
            if model.outputs:
                return model.outputs[0] if len(model.outputs) == 1 else model.outputs
            raise self.frame.error(f"{model.what} returns nothing; let it return its outputs", node)
        return model

    def assign(self, target: ast.expr, model: Model, node: ast.stmt) -> None:
        """Bind names, or store into a tensor."""
        if isinstance(target, ast.Name):
            if isinstance(model, Value) and defining_op(model) is not None and model.name in _PLAIN_NAMES:
                model.name = target.id
            self.frame.env[target.id] = model
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(model, tuple):
                raise self.frame.error(f"cannot unpack {describe(model)}", node)
            if len(target.elts) == 2 < len(model) and isinstance(target.elts[0], ast.Tuple) and is_tasks(model[-1]):
                # `(a, b), tasks = pl.submit(...)`: the results stand together.
                model = (model[:-1], model[-1])
            for part, item in zip(
                target.elts, known_values.unpacked(self.frame, target.elts, model, node), strict=True
            ):
                self.assign(part.value if isinstance(part, ast.Starred) else part, item, node)
        elif isinstance(target, ast.Subscript):
            self._store(target, model, node)
        else:
            raise self.frame.syntax_error("only names and slices of tensors can be assigned", target)

    def _store(self, target: ast.Subscript, model: Model, node: ast.stmt) -> None:
        frame = self.frame
        tensor = evaluate(frame, target.value)
        if is_tile(tensor):
            self._store_in_tile(tensor, target, model, node)
            return
        if not is_tensor(tensor):
            raise frame.error(f"{describe(tensor)} cannot be assigned to in part; only tensors can", target)
        if not frame.whole:
            frame.need_core("an assignment to a tensor", node)
        frame.check_writes(tensor, target)
        if is_number(model) or is_scalar(model):
            offsets, sizes, dropped = window(frame, tensor, target)
            if len(dropped) == len(sizes):
                elements.write(frame, tensor, offsets, model, node)
                return
        if frame.whole:
            if is_number(model) or is_scalar(model):
                raise frame.error("a tensor is assigned tensors; make one with pl.full", node)
            offsets, sizes, dropped = window(frame, tensor, target)
            if dropped:
                tensor = self._narrowed(tensor, offsets, sizes, dropped, target)
                sizes = list(frame.dims(tensor, target))
                offsets = [frame.index(0, target, "an offset") for _ in sizes]
            arrays.assign(frame, tensor, offsets, sizes, model, node)
            return
        if is_number(model) or is_scalar(model):
            raise frame.error("a tensor is assigned tiles; make one with pl.full", node)
        offsets, sizes, dropped = window(frame, tensor, target)
        if dropped:
            tensor = self._narrowed(tensor, offsets, sizes, dropped, target)
            sizes = [s for axis, s in enumerate(sizes) if axis not in dropped]
            offsets = [frame.index(0, target, "an offset") for _ in sizes]
        tile = frame.tile(model, node, "the assigned value")
        valid = tile.type.valid if isinstance(tile.type, TileType) else ()
        lengths = (1,) * (len(sizes) - 2) + (valid if len(sizes) > 1 else valid[1:])
        for axis, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
            if not same_value(size, length):
                raise frame.error(
                    f"axis {axis} of the slice has {length_text(size)} elements, "
                    f"but the tile has {length_text(length)} valid ones there",
                    node,
                )
        with frame.at(node):
            frame.builder.store(tile, tensor, offsets)

    def _store_in_tile(self, tile: Value, target: ast.Subscript, model: Model, node: ast.stmt) -> None:
        """``tile[i, j] = number`` or ``tile[a:b, c:d] = tile``."""
        frame = self.frame
        offsets, sizes, dropped = window(frame, tile, target)
        if is_number(model) or is_scalar(model):
            if len(dropped) != len(sizes):
                raise frame.error("a part of a tile is assigned tiles; make one with pl.full", node)
            frame.rebind(tile, elements.write_tile(frame, tile, offsets, model, node))
            return
        source = frame.tile(model, node, "the assigned value")
        valid = source.type.valid if isinstance(source.type, TileType) else ()
        if not all(same_value(size, length) for size, length in zip(sizes, valid, strict=True)):
            raise frame.error(f"the slice of {describe(tile)} has another shape than {describe(source)}", node)
        frame.rebind(tile, frame.op("tile.assemble", [tile, source, *offsets], node).result)

    def _narrowed(
        self, tensor: Value, offsets: list[Value], sizes: Sequence[Model], dropped: tuple[int, ...], node: ast.AST
    ) -> Value:
        """The part of a tensor that a subscript with single indices names."""
        if len(dropped) == len(sizes):
            raise self.frame.error("one element is written with pl.write(tensor, [i, j], value)", node)
        with self.frame.at(node):
            return self.frame.builder.view(tensor, offsets, sizes, tensor.name, dropped)

    def _augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            part = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target)
            changed = ast.copy_location(ast.BinOp(part, node.op, node.value), node)
            self.assign(node.target, evaluate(self.frame, changed), node)
            return
        if not isinstance(node.target, ast.Name):
            raise self.frame.syntax_error("an augmented assignment needs a name or a slice; write a = a + b", node)
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        left = lookup(self.frame, load)
        binary = ast.copy_location(ast.BinOp(load, node.op, node.value), node)
        if is_tensor(left) and not (self.frame.whole and self._is_result(left)):
            raise self.frame.divisible(
                f"{node.target.id} is a tensor; assign to a slice of it: {node.target.id}[:] = ...", node
            )
        self.assign(node.target, evaluate(self.frame, binary), node)

    def _is_result(self, tensor: Value) -> bool:
        """Whether a tensor is the result of an operation, so that a name may get another one instead."""
        root = self.frame.root(tensor)
        op = defining_op(root)
        made = op is not None and op.name == "tensor.create"
        return tensor in self.frame.tiles or (
            not made and all(param.value is not root for param in self.frame.function.params)
        )

    def _assert(self, node: ast.Assert) -> None:
        """A condition that is known while compiling, as ``pl.static_assert``."""
        holds = known_values.truth(evaluate(self.frame, node.test))
        if not is_number(holds):
            raise self.frame.error(
                f"assert is about what is known while compiling, not {describe(holds)}; check arguments before the "
                "call",
                node,
            )
        if not holds:
            said = "" if node.msg is None else f": {evaluate(self.frame, node.msg)}"
            raise self.frame.error(f"assert {ast.unparse(node.test)} does not hold{said}", node)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                raise self.frame.syntax_error("only names can be deleted; tiles are freed after their last use", target)
            lookup(self.frame, ast.copy_location(ast.Name(target.id, ast.Load()), target))
            self.frame.env[target.id] = Unusable("was deleted")

    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and (isinstance(node.value.value, str) or node.value.value is ...):
            return
        if not isinstance(node.value, ast.Call):
            raise self.frame.syntax_error("this expression has no effect; assign it or remove it", node)
        if id(node) not in self.leading and known_values.calls_func_attr(node.value):
            raise self.frame.syntax_error("pl.func_attr stands in front of all other statements of a function", node)
        model = evaluate(self.frame, node.value)
        op = defining_op(model) if is_tile(model) else None
        if op is not None and (changed := definition(op.name).inplace) is not None:
            self.frame.rebind(op.operands[changed], model)

    # Conditions

    def _if(self, node: ast.If) -> None:
        frame = self.frame
        condition = known_values.truth(evaluate(frame, node.test))
        if is_number(condition):
            self.block(node.body if condition else node.orelse)
            return
        chosen = condition_value(frame, condition, node.test)
        before, outer = dict(frame.env), frame.outer_names()
        branches: list[tuple[Block, dict[str, Model]]] = []
        for statements in (node.body, node.orelse):
            frame.env = dict(before)
            frame.restore_names(outer)
            block = Block()
            with frame.builder.inside(block):
                self.block(statements)
            branches.append((block, frame.env))
        frame.env = dict(before)
        frame.restore_names(outer)
        live = self.live.after(node)
        merged: list[tuple[str, list[Value]]] = []
        aliases: dict[str, str] = {}
        keys = lanes.keys_of_branches([env for _, env in branches], before)
        changed = [n for n, m in before.items() if is_tile(m) and any(env[n] is not m for _, env in branches)]
        for name in dict.fromkeys([*stored_names([*node.body, *node.orelse]), *changed, *keys]):
            models = [env.get(name, Unusable("")) for _, env in branches]
            if all(model is lanes.PER_LANE for model in models):
                frame.env[name] = lanes.PER_LANE
            elif any(isinstance(model, Unusable) for model in models):
                frame.env[name] = Unusable("is not assigned in both branches of an if; give it a value before")
            elif _same_model(*models):
                frame.env[name] = models[0]
            elif (twin := next((n for n, v in merged if name in changed and _same(v, models)), None)) is not None:
                aliases[name] = twin
            elif lanes.base_name(name) in live or (name in changed and frame.held_outside(before[name])):
                merged.append((name, self._merge(name, models, [block for block, _ in branches], node)))
            else:
                frame.env[name] = Unusable("is assigned only inside an if; give it a value before")
        for position, (block, _) in enumerate(branches):
            with frame.builder.inside(block):
                frame.op("scf.yield", [values[position] for _, values in merged], node)
        inside = {id(op) for block, _ in branches for op in block.walk()}
        types = [self._type_of_both(name, values[0].type, inside, node) for name, values in merged]
        with frame.at(node):
            made = frame.builder.op("scf.if", [chosen], types=types, regions=[block for block, _ in branches])
        if frame.on_core:
            frame.core_values.add(id(made))
        for (name, values), result in zip(merged, made.results, strict=True):
            result.name = name
            if is_tensor(result):
                readable = any(frame.direction(value) is Direction.In for value in values)
                frame.directions[id(result)] = Direction.In if readable else Direction.InOut
                handing.keep_tile(frame, result, *values)
            frame.env[name] = result
        for name, twin in aliases.items():
            frame.env[name] = frame.env[twin]
        for name in changed:
            # What was changed in place is changed for the callers as well.
            if is_tile(frame.env[name]):
                frame.rebind(before[name], frame.env[name])

    def _merge(self, name: str, models: list[Model], blocks: list[Block], node: ast.If) -> list[Value]:
        frame = self.frame
        scalars = [is_number(m) or is_scalar(m) for m in models]
        if all(scalars):
            known = [m.type.dtype for m in models if is_scalar(m)] or [frame.default_dtype(m) for m in models]
            dtype = known[0] if len(known) == 1 else frame.common_dtype(*known)
            given = [m.type.dtype if is_scalar(m) else frame.default_dtype(m) for m in models]
            if any(d.is_float for d in given) and any(d.is_integer for d in given):
                # A whole number in one branch becomes what the other has.
                dtype = FP32
            if dtype is not None and (dtype == FP32 or not any(isinstance(m, float) for m in models)):
                values = []
                for model, block in zip(models, blocks, strict=True):
                    with frame.builder.inside(block):
                        number = float(model) if dtype == FP32 and is_number(model) else model
                        values.append(frame.operand(number, dtype, node, name))
                return values
        if frame.on_core and any(is_tile(m) for m in models) and any(is_tensor(m) for m in models):
            for position, block in enumerate(blocks):
                with frame.builder.inside(block):
                    models[position] = frame.tile(models[position], node, name)
        if any(is_tasks(m) for m in models) and all(is_tasks(m) or m is None for m in models):
            for position, block in enumerate(blocks):
                with frame.builder.inside(block):
                    models[position] = no_tasks(frame, node) if models[position] is None else models[position]
        same = all(isinstance(m, Value) for m in models) and same_type(models[0].type, models[1].type)
        if same and (is_tile(models[0]) or is_tasks(models[0]) or (is_tensor(models[0]) and not frame.on_core)):
            return models
        if any(is_tensor(m) for m in models) and frame.on_core:
            raise frame.divisible(
                f"{name} stands for different tensors after the if; call or store in each branch", node
            )
        shown = [f"{describe(m)}{valid_text(m)}" for m in models]
        raise frame.error(
            f"{name} is {shown[0]} in one branch and {shown[1]} in the other; both must have one type", node
        )

    def _type_of_both(self, name: str, type: Type, inside: set[int], node: ast.If) -> Type:
        """The type of what either branch gives, whose lengths are known outside of them."""
        if not isinstance(type, TensorType):
            return type
        shape = tuple(map(named_length, type.shape))
        for axis, length in enumerate(shape):
            if isinstance(length, Value) and id(length.owner) in inside:
                raise self.frame.error(
                    f"axis {axis} of {name} has a length that is computed in the branches; compute it before the if",
                    node,
                )
        return replace(type, shape=shape)

    # Returns

    def _return(self, node: ast.Return) -> tuple[int, ...]:
        frame = self.frame
        if node.value is None:
            return ()
        model = self.value(node.value)
        models = model if isinstance(model, tuple) else (model,)
        places = [node.value] * len(models)
        if isinstance(node.value, ast.Tuple):
            places = node.value.elts
        values = [p.value for p in frame.function.params]
        returned = []
        for item, place in zip(models, places, strict=True):
            # A window's name stands for a part of its parameter.
            item = frame.windows.get(id(item), (item, item))[1]
            if is_tile(item) and frame.function.kind is FunctionKind.INCORE:
                item = handing.result_parameter(frame, item, place)
                values.append(item)
            if not is_tensor(item) or item not in values:
                raise frame.error(
                    f"a function returns its output parameters, not {describe(item)}; store it into a pl.Out parameter",
                    place,
                )
            frame.check_writes(item, place)
            returned.append(values.index(item))
        if len(set(returned)) != len(returned):
            raise frame.error("an output is returned twice", node)
        return tuple(returned)


def _same(values: Sequence[Value], models: Sequence[Model]) -> bool:
    return all(value is model for value, model in zip(values, models, strict=True))


def _same_model(a: Model, b: Model) -> bool:
    return a is b or (is_number(a) and type(a) is type(b) and a == b)


# Names that builders give when nobody named a value.
_PLAIN_NAMES = frozenset({"v", "c", "tile", "t", "view", "acc"})
