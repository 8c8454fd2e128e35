"""The operations of the language. Bodies of kernels are parsed, never run, so the functions here only have signatures.

Shapes are ``[rows, cols]``, known while compiling; offsets and valid lengths may be run-time values. Operands are
tiles, or tensors and views of known shape, which are loaded as a whole. Everything raises :class:`OutsideKernelError`
when Python calls it.
"""

from __future__ import annotations

from typing import Any

from pypto.ir.types import MemorySpace
from pypto.language.stubs import operation


@operation
def add(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs + rhs``; either side may be a scalar."""


@operation
def sub(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs - rhs``; either side may be a scalar."""


@operation
def mul(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs * rhs``; either side may be a scalar."""


@operation
def div(lhs: Any, rhs: Any, high_precision: bool = False) -> Any:
    """Element by element: ``lhs / rhs``; either side may be a scalar."""


@operation
def maximum(lhs: Any, rhs: Any) -> Any:
    """Element by element: the larger one; either side may be a scalar."""


@operation
def minimum(lhs: Any, rhs: Any) -> Any:
    """Element by element: the smaller one; either side may be a scalar."""


@operation
def adds(lhs: Any, rhs: Any) -> Any:
    """``lhs + rhs`` of a tile and a scalar."""


@operation
def subs(lhs: Any, rhs: Any) -> Any:
    """``lhs - rhs`` of a tile and a scalar."""


@operation
def muls(lhs: Any, rhs: Any) -> Any:
    """``lhs * rhs`` of a tile and a scalar."""


@operation
def divs(lhs: Any, rhs: Any) -> Any:
    """``lhs / rhs`` of a tile and a scalar."""


@operation
def maximums(lhs: Any, rhs: Any) -> Any:
    """The larger one of each element and a scalar."""


@operation
def minimums(lhs: Any, rhs: Any) -> Any:
    """The smaller one of each element and a scalar."""


@operation
def exp(input: Any) -> Any:
    """e to the power of each element."""


@operation
def log(input: Any, high_precision: bool = False) -> Any:
    """Natural logarithm of each element."""


@operation
def sqrt(input: Any) -> Any:
    """Square root of each element."""


@operation
def rsqrt(input: Any, high_precision: bool = False) -> Any:
    """One over the square root of each element."""


@operation
def recip(input: Any, high_precision: bool = False) -> Any:
    """One over each element."""


@operation
def neg(input: Any) -> Any:
    """Each element negated."""


@operation
def abs(input: Any) -> Any:
    """Absolute value of each element."""


@operation
def relu(input: Any) -> Any:
    """The larger one of each element and 0."""


@operation
def row_sum(input: Any, tmp_tile: Any = None) -> Any:
    """Sum of each row: a column ``[rows, 1]``. ``tmp_tile`` is accepted and not needed."""


@operation
def row_max(input: Any, tmp_tile: Any = None) -> Any:
    """Largest element of each row: a column ``[rows, 1]``. ``tmp_tile`` is accepted and not needed."""


@operation
def row_min(input: Any, tmp_tile: Any = None) -> Any:
    """Smallest element of each row: a column ``[rows, 1]``. ``tmp_tile`` is accepted and not needed."""


@operation
def col_sum(input: Any, tmp_tile: Any = None) -> Any:
    """Sum of each column: a row ``[1, cols]``."""


@operation
def col_max(input: Any) -> Any:
    """Largest element of each column: a row ``[1, cols]``."""


@operation
def col_min(input: Any) -> Any:
    """Smallest element of each column: a row ``[1, cols]``."""


@operation
def row_expand(lhs: Any, rhs: Any) -> Any:
    """The column ``rhs`` ``[rows, 1]`` repeated to the shape of ``lhs``."""


@operation
def row_expand_add(lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    """``lhs + rhs`` with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""


@operation
def row_expand_sub(lhs: Any, rhs: Any) -> Any:
    """``lhs - rhs`` with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""


@operation
def row_expand_mul(lhs: Any, rhs: Any) -> Any:
    """``lhs * rhs`` with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""


@operation
def row_expand_div(lhs: Any, rhs: Any) -> Any:
    """``lhs / rhs`` with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""


@operation
def row_expand_max(lhs: Any, rhs: Any) -> Any:
    """The larger one of each element and its row's element in the column ``rhs`` ``[rows, 1]``."""


@operation
def row_expand_min(lhs: Any, rhs: Any) -> Any:
    """The smaller one of each element and its row's element in the column ``rhs`` ``[rows, 1]``."""


@operation
def col_expand(lhs: Any, rhs: Any) -> Any:
    """The row ``rhs`` ``[1, cols]`` repeated to the shape of ``lhs``."""


@operation
def col_expand_add(lhs: Any, rhs: Any) -> Any:
    """``lhs + rhs`` with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""


@operation
def col_expand_sub(lhs: Any, rhs: Any) -> Any:
    """``lhs - rhs`` with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""


@operation
def col_expand_mul(lhs: Any, rhs: Any) -> Any:
    """``lhs * rhs`` with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""


@operation
def col_expand_div(lhs: Any, rhs: Any) -> Any:
    """``lhs / rhs`` with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""


@operation
def expands(target: Any, scalar: Any) -> Any:
    """A tile of the shape and dtype of ``target``, filled with a scalar."""


@operation
def cast(input: Any, target_type: Any, mode: str = "round") -> Any:
    """Another element type, for tiles and scalars. ``mode``: none, rint, round, floor, ceil, trunc."""


@operation
def matmul(
    lhs: Any, rhs: Any, out_dtype: Any = None, a_trans: bool = False, b_trans: bool = False, c_matrix_nz: bool = False
) -> Any:
    """Matrix product of ``[M, K]`` and ``[K, N]``; FP16, BF16 and FP32 give FP32, INT8 gives INT32.

    ``a_trans`` and ``b_trans`` say that an operand is stored as ``[K, M]`` or ``[N, K]``; such an operand is a load.
    """


@operation
def matmul_acc(
    acc: Any, lhs: Any, rhs: Any, a_trans: bool = False, b_trans: bool = False, init_cond: Any = None
) -> Any:
    """``acc + lhs @ rhs``; where ``init_cond`` holds, ``lhs @ rhs`` and ``acc`` is not read."""


@operation
def slice(
    input: Any,
    shape: Any,
    offset: Any,
    valid_shape: Any = None,
    drop_dims: Any = None,
    pad_value: Any = None,
    clamp: bool = False,
) -> Any:
    """A window of a tensor (a view) or of a tile (a copy)."""


@operation
def reshape(input: Any, shape: Any) -> Any:
    """The same elements in another shape; tiles only."""


@operation
def transpose(input: Any, axis1: Any, axis2: Any, tmp_tile: Any = None) -> Any:
    """Rows and columns of a tile swapped."""


@operation
def set_validshape(input: Any, valid_rows: Any, valid_cols: Any) -> Any:
    """The tile with other valid lengths."""


@operation
def load(
    tensor: Any,
    offsets: Any,
    shapes: Any,
    valid_shape: Any = None,
    target_memory: Any = MemorySpace.Vec,
    clamp: bool = False,
) -> Any:
    """A tile from a window of a tensor.

    Args:
        offsets: one per dimension of the tensor, in elements; may be run-time values.
        shapes: known sizes of the window; all but the last two are 1.
        valid_shape: sizes that hold data, at most ``shapes``; may be run-time values.
        target_memory: Vec or Mat. Unless given, a tile that only matrix operations use goes to Mat, others to Vec.
        clamp: of the window, only what the tensor has there holds data.
    """


@operation
def store(tile: Any, offsets: Any, output_tensor: Any, shapes: Any = None, *, atomic: Any = None) -> Any:
    """Write the valid part of a tile into a tensor; gives the tensor."""


@operation
def read(src: Any, offset: Any) -> Any:
    """One element of an input of the entry, as a scalar; read on the host while tasks are put together."""


@operation
def write(dst: Any, offset: Any, value: Any) -> Any:
    """Write one number into a tensor, on a core; gives the tensor."""


@operation
def assemble(target: Any, source: Any, offset: Any, *, atomic: Any = None) -> Any:
    """Write a tile or tensor into a tensor at an offset; gives the tensor."""


@operation
def concat(src0: Any, src1: Any) -> Any:
    """Two tensors or tiles beside each other: the columns of the first, then those of the second."""


@operation
def batch_matmul(lhs: Any, rhs: Any) -> Any:
    """Matrix products of ``[..., M, K]`` and ``[..., K, N]``, one for each index of the leading dimensions."""


@operation
def move(tile: Any, target_memory: Any, blayout: Any = None, slayout: Any = None) -> Any:
    """The tile in another on-chip memory."""


@operation
def create(
    shape: Any, dtype: Any, target_memory: Any = MemorySpace.Vec, transpose: Any = None, *, flat_layout: Any = None
) -> Any:
    """A tile without values yet."""


@operation
def create_tile(shape: Any, dtype: Any, target_memory: Any = MemorySpace.Vec) -> Any:
    """A tile without values yet."""


@operation
def full(shape: Any, dtype: Any, value: Any) -> Any:
    """A tile filled with a scalar."""


@operation
def create_tensor(shape: Any, dtype: Any, layout: Any = None, manual_dep: bool = False, init_value: Any = None) -> Any:
    """A workspace in global memory that lives until the run ends; entries only. Its elements have no values yet."""


@operation
def range(*args: Any, init_values: Any = None) -> Any:
    """Bounds of a for loop: ``(stop)``, ``(start, stop)`` or ``(start, stop, step)``; rebound names are carried."""


@operation
def parallel(*args: Any, init_values: Any = None) -> Any:
    """A loop like ``pl.range`` whose turns do not depend on each other; what runs at once follows from the data."""


@operation
def unroll(*args: Any) -> Any:
    """A loop over numbers known while compiling; its body is written out once for each."""


@operation
def pipeline(*args: Any, stage: Any, init_values: Any = None) -> Any:
    """A loop like ``pl.range`` whose turns may overlap, ``stage`` of them."""


@operation
def while_(*, init_values: Any = None) -> Any:
    """A loop with a condition, in entries: ``for (n,) in pl.while_(init_values=(8,)):``, ``pl.cond(...)`` first."""


@operation
def yield_(*values: Any) -> Any:
    """The values for the next turn of a loop with ``init_values``, or of a branch; gives the values."""


@operation
def cond(condition: Any) -> Any:
    """The condition of a ``pl.while_`` loop; first statement of its body."""


@operation
def static_assert(condition: Any, msg: str = "") -> Any:
    """An error while compiling unless a condition on known numbers holds."""


@operation
def static_print(*args: Any) -> Any:
    """Print what expressions stand for while compiling, to the standard error output."""


@operation
def at(
    level: Any,
    role: Any = None,
    *,
    optimizations: Any = None,
    deps: Any = None,
    no_dep_args: Any = None,
    dumps: Any = None,
    allow_early_resolve: bool = False,
    name_hint: str = "",
    windowize: bool = False,
) -> Any:
    """A scope of an entry whose body runs on a core: ``with pl.at(level=pl.Level.CORE_GROUP):``."""


@operation
def const(value: Any, dtype: Any) -> Any:
    """A scalar of a certain dtype."""


@operation
def min(lhs: Any, rhs: Any) -> Any:
    """The smaller one of two scalars."""


@operation
def max(lhs: Any, rhs: Any) -> Any:
    """The larger one of two scalars."""
