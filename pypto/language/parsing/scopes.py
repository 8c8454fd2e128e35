"""The two ways to read a scope: as code for tiles, or as work on whole tensors of any size."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Sequence

from pypto.ir.builder import Builder
from pypto.ir.errors import IRError, TileShapeError
from pypto.ir.footprint import MemoryLimitError, fits_in_order
from pypto.ir.nodes import Block, Direction, Function, FunctionKind, Op, Param, Program, Value
from pypto.ir.passes import pipeline
from pypto.ir.rewrite import captured, cloned_block
from pypto.ir.types import TileType
from pypto.language.errors import CompileError, KernelMemoryError, TileCodeError
from pypto.language.parsing.frame import Frame, tile_type
from pypto.language.parsing.model import describe


class Fit(enum.Enum):
    """Whether the tiles of a scope fit on chip; ptoas, which places them, has the last word."""

    YES = "also when one is placed after the other"
    PERHAPS = "if they are placed well"
    NO = "however they are placed"


def parse_scope(frame: Frame, parse: Callable[[], None], name: str, node: ast.AST) -> bool:
    """Parse the body of a scope and append it; return whether it is divided.

    Tensors that operations take as a whole are tiles if everything fits on chip that way. Otherwise the body is parsed
    as work on whole tensors, which the compiler divides.
    """
    program, env = frame.program, dict(frame.env)
    state, loads, taken = program.checkpoint(), program.loads_of_tensors, len(program.taken_whole)
    body = Block()
    failure: CompileError | None = None
    fit = Fit.YES
    try:
        frame.outer, frame.scope = frame.builder.block, body
        with frame.builder.inside(body):
            parse()
        if program.loads_of_tensors != loads:
            fit = fits(body, program.backend_type)
        if fit is Fit.YES:
            with frame.at(node):
                frame.builder.op("func.scope", attrs={"name": name}, regions=[body])
            return False
    except CompileError as error:
        if not error.divisible:
            raise
        failure = error
    tiled, parsed = dict(frame.env), program.checkpoint()
    program.restore(state)
    frame.env = dict(env)
    frame.whole = True
    divided = Block()
    try:
        with frame.builder.inside(divided):
            parse()
    except CompileError as error:
        tile_code = isinstance(error, TileCodeError)
        if (
            tile_code
            and fit is not Fit.PERHAPS
            and any(op.name in ("tensor.apply", "tensor.assign") for op in divided.walk())
        ):
            raise _with(error, "; put it into a scope of its own, apart from the work on whole tensors") from None
        if failure is not None and tile_code and failure.line != error.line:
            apart = f", or put it into a scope of its own, apart from the code for tiles in line {error.line}"
            raise _with(failure, apart) from None
        if failure is not None:
            raise (failure if tile_code else error) from None
        if fit is Fit.NO and not tile_code:
            raise
        if fit is Fit.NO:
            _refuse_large(program.taken_whole[taken:], body, error)
        # The passes, or ptoas, say what does not fit.
        program.restore(parsed)
        frame.env = tiled
        with frame.at(node):
            frame.builder.op("func.scope", attrs={"name": name}, regions=[body])
        return False
    finally:
        frame.whole = False
    frame.builder.block.ops.extend(divided.ops)
    return True


def _refuse_large(taken: Sequence[tuple[Value, Frame, ast.AST]], body: Block, code: CompileError) -> None:
    """Refuse a tensor that is the largest tile of a scope beside code for tiles, which cannot be divided."""
    loaded = {id(op.result) for op in body.walk() if op.name == "tile.load"}
    largest = max((item for item in taken if id(item[0]) in loaded), key=lambda item: _bytes(item[0]), default=None)
    tiles = [result for op in body.walk() for result in op.results if isinstance(result.type, TileType)]
    if largest is not None and _bytes(largest[0]) == max(map(_bytes, tiles)):
        tile, frame, node = largest
        raise frame.error(
            f"{tile.name} is taken as a whole here, as {describe(tile)}, and with it the scope does not fit on chip; "
            f"put this into a scope of its own, apart from the code for tiles in line {code.line}, so that the "
            "compiler divides it",
            node,
            KernelMemoryError,
        )


def _bytes(tile: Value) -> int:
    return tile_type(tile).nbytes


def _with(error: CompileError, advice: str) -> CompileError:
    return type(error)(error.message + advice, *error.args[1:])


def fits(body: Block, backend_type: str) -> Fit:
    """Whether the tiles of a scope fit on chip; other errors are those of the passes."""
    params: list[Param] = []
    mapping: dict[int, Value] = {}
    inner = Block()
    for value in captured(body):
        made = Value(value.name, value.type, inner)
        mapping[id(value)] = made
        params.append(Param(made, Direction.InOut))
    builder = Builder(inner)
    builder.op("func.scope", attrs={"name": ""}, regions=[cloned_block(body, mapping)])
    inner.ops.append(Op("scf.return", [], [], {}, [], None))
    trial = Function("trial", FunctionKind.ORCHESTRATION, params, inner)
    try:
        lowered = pipeline.run(Program("trial", {"trial": trial}), backend_type)
    except (MemoryLimitError, TileShapeError):
        return Fit.NO
    except IRError:
        return Fit.YES
    kernels = [f for f in lowered.functions.values() if f.kind is FunctionKind.INCORE]
    return Fit.YES if all(fits_in_order(kernel, backend_type) for kernel in kernels) else Fit.PERHAPS
