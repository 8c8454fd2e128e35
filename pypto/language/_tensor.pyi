"""Written by tools/op_tables.py; do not edit."""

from typing import Any

from pypto.ir.types import *

def create(shape: Any, dtype: Any, layout: Any = None, manual_dep: Any = False, init_value: Any = None) -> Any:
    """``pl.create_tensor``."""

def no_dep(tensor: Any) -> Any:
    """Another handle of the tensor: what tasks read and write through it orders none of them."""

def dump_tag(tensor: Any) -> Any:
    """The tensor, marked for dumps of runs on devices; on the simulator make it an output instead."""

def dim(tensor: Any, axis: Any) -> Any:
    """Size of a dimension of a tensor."""

def expand_clone(src: Any, target: Any) -> Any:
    """``src`` repeated to the shape of ``target``."""

def view(tensor: Any, shape: Any = None, valid_shape: Any = None, *, layout: Any = None) -> Any:
    """Another handle of the same tensor."""

def paged_gather(src: Any, indices: Any, block_table: Any, block_size: Any, size: Any, max_indices: Any, *, space: Any = MemorySpace.Mat, col_off: Any = 0, is_trans: Any = False, is_b_matrix: Any = False) -> Any:
    """Not supported: read the table with pl.read and bring the rows into a tile with pl.gather_row."""

def create_l1(shape: Any, dtype: Any, transpose: Any = False) -> Any:
    """A tile in matrix memory; `transpose` swaps its sizes."""

def gather(input: Any, dim: Any = None, index: Any = None, *, mask_pattern: Any = None, output_dtype: Any = None, kvalue: Any = None, cmp_mode: Any = None, out_cols: Any = None, offset: Any = 0, count_dtype: Any = None) -> Any:
    """Elements of a tensor that an index, a pattern or a comparison chooses."""

def scatter(input: Any, dim: Any = None, index: Any = None, src: Any = None, *, mask_pattern: Any = None, dst: Any = None) -> Any:
    """Elements written where an index or a pattern says."""

def random(key0: Any, key1: Any, counter0: Any, counter1: Any, counter2: Any, counter3: Any, shape: Any, dtype: Any = UINT32, rounds: Any = 10) -> Any:
    """Random bits from a counter and a key."""

def slice(input: Any, shape: Any, offset: Any, valid_shape: Any = None, drop_dims: Any = None, pad_value: Any = None, clamp: Any = False) -> Any:
    """A window of a tensor (a view) or of a tile (a copy)."""

def reshape(input: Any, shape: Any) -> Any:
    """The same elements in another shape: another handle of a tensor, or a tile."""

def transpose(input: Any, axis1: Any, axis2: Any, tmp_tile: Any = None) -> Any:
    """Rows and columns of a tile swapped."""

def set_validshape(input: Any, valid_rows: Any, valid_cols: Any) -> Any:
    """The tile with other valid lengths."""

def read(src: Any, offset: Any) -> Any:
    """One element as a scalar: of a tile or tensor on a core, or of an input in the entry, before tasks run."""

def write(dst: Any, offset: Any, value: Any) -> Any:
    """Write one number into a tensor, on a core; gives the tensor."""

def concat(src0: Any, src1: Any) -> Any:
    """Two tensors or tiles beside each other: the columns of the first, then those of the second."""

def full(shape: Any, dtype: Any, value: Any) -> Any:
    """A tile filled with a scalar."""

def alloc(memory_space: Any, size: Any, *, pinned: Any = False) -> Any:
    """Not supported: ptoas places every tile by itself."""

def get_block_idx() -> Any:
    """Number of this block among those of a launch; 0 outside of one."""

def get_subblock_idx() -> Any:
    """Number of this vector core within its block; 0 outside of `pl.split_aiv`."""

def get_block_num() -> Any:
    """How many blocks the launch has; 1 outside of one."""

def assemble(target: Any, source: Any, offset: Any, *, atomic: Any = None) -> Any:
    """Write a tile or tensor into a tensor at an offset; gives the tensor."""

def reinterpret_view(data: Any, dtype: Any, *, shape: Any = None) -> Any:
    """The same bytes as elements of another type."""

def fillpad(value: Any, pad_value: Any = PadValue.zero) -> Any:
    """The tile with a value where it is not valid; valid throughout."""

def fillpad_expand(value: Any, shape: Any, pad_value: Any = PadValue.zero) -> Any:
    """A larger tile, filled with a value where ``value`` does not reach."""

def ci(start: Any, shape: Any, dtype: Any = INT32, descending: Any = False) -> Any:
    """A row of whole numbers that count up, or down, from ``start``."""

def add(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs + rhs``; either side may be a scalar, a column or a row."""

def sub(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs - rhs``; either side may be a scalar, a column or a row."""

def mul(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs * rhs``; either side may be a scalar, a column or a row."""

def div(lhs: Any, rhs: Any, high_precision: Any = False) -> Any:
    """Element by element: ``lhs / rhs``; either side may be a scalar, a column or a row."""

def maximum(lhs: Any, rhs: Any) -> Any:
    """Element by element: the larger one; either side may be a scalar, a column or a row."""

def minimum(lhs: Any, rhs: Any) -> Any:
    """Element by element: the smaller one; either side may be a scalar, a column or a row."""

def fmod(lhs: Any, rhs: Any) -> Any:
    """Element by element: the remainder of ``lhs / rhs``, with the sign of ``lhs``."""

def and_(lhs: Any, rhs: Any) -> Any:
    """Element by element: bits that both have."""

def or_(lhs: Any, rhs: Any) -> Any:
    """Element by element: bits that one of them has."""

def xor(lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    """Element by element: bits in which they differ."""

def shl(lhs: Any, rhs: Any) -> Any:
    """Element by element: the bits of ``lhs`` moved up by ``rhs``."""

def shr(lhs: Any, rhs: Any) -> Any:
    """Element by element: the bits of ``lhs`` moved down by ``rhs``; signed numbers keep their sign."""

def adds(lhs: Any, rhs: Any) -> Any:
    """``lhs + rhs`` of a tile and a scalar, element by element."""

def subs(lhs: Any, rhs: Any) -> Any:
    """``lhs - rhs`` of a tile and a scalar, element by element."""

def muls(lhs: Any, rhs: Any) -> Any:
    """``lhs * rhs`` of a tile and a scalar, element by element."""

def divs(lhs: Any, rhs: Any) -> Any:
    """``lhs / rhs`` of a tile and a scalar, element by element."""

def fmods(lhs: Any, rhs: Any) -> Any:
    """The remainder of ``lhs / rhs``, with the sign of ``lhs``, for a tile and a scalar."""

def ands(lhs: Any, rhs: Any) -> Any:
    """Bits that both have, for a tile and a scalar."""

def ors(lhs: Any, rhs: Any) -> Any:
    """Bits that one of them has, for a tile and a scalar."""

def xors(lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    """Bits in which they differ, for a tile and a scalar."""

def shls(lhs: Any, rhs: Any) -> Any:
    """The bits of ``lhs`` moved up by ``rhs``, for a tile and a scalar."""

def shrs(lhs: Any, rhs: Any) -> Any:
    """The bits of ``lhs`` moved down by ``rhs``; signed numbers keep their sign, for a tile and a scalar."""

def exp(input: Any) -> Any:
    """e to the power of each element."""

def log(input: Any, high_precision: Any = False) -> Any:
    """Natural logarithm of each element."""

def sqrt(input: Any) -> Any:
    """Square root of each element."""

def rsqrt(input: Any, high_precision: Any = False, tmp: Any = None) -> Any:
    """One over the square root."""

def recip(input: Any, high_precision: Any = False) -> Any:
    """One over each element."""

def neg(input: Any) -> Any:
    """Each element negated."""

def abs(input: Any) -> Any:
    """Absolute value of each element."""

def sin(input: Any) -> Any:
    """Sine of each element, in radians."""

def cos(input: Any) -> Any:
    """Cosine of each element, in radians."""

def not_(input: Any) -> Any:
    """The bits that each element has not."""

def part_add(lhs: Any, rhs: Any) -> Any:
    """The sum where both tiles are valid; elsewhere the one that is."""

def part_mul(lhs: Any, rhs: Any) -> Any:
    """The product where both tiles are valid; elsewhere the one that is."""

def part_max(lhs: Any, rhs: Any) -> Any:
    """The larger one where both tiles are valid; elsewhere the one that is."""

def part_min(lhs: Any, rhs: Any) -> Any:
    """The smaller one where both tiles are valid; elsewhere the one that is."""

def cmp(lhs: Any, rhs: Any, cmp_type: Any = 0) -> Any:
    """1 where the comparison holds, else 0: ``cmp_type`` 0 is ==, 1 !=, 2 <, 3 <=, 4 >, 5 >=, or their names eq to ge."""

def cast(input: Any, target_type: Any, mode: Any = 'round') -> Any:
    """Another element type, for tiles and scalars. ``mode``, for whole numbers: none, rint, round, floor, ceil, trunc."""

def row_sum(input: Any, tmp_tile: Any = None) -> Any:
    """Sum of each row: a column ``[rows, 1]``. ``tmp_tile`` is not needed."""

def row_max(input: Any, tmp_tile: Any = None) -> Any:
    """Largest element of each row: a column ``[rows, 1]``. ``tmp_tile`` is not needed."""

def row_min(input: Any, tmp_tile: Any = None) -> Any:
    """Smallest element of each row: a column ``[rows, 1]``. ``tmp_tile`` is not needed."""

def col_sum(input: Any, tmp_tile: Any = None) -> Any:
    """Sum of each column: a row ``[1, cols]``. ``tmp_tile`` is not needed."""

def col_max(input: Any, tmp_tile: Any = None) -> Any:
    """Largest element of each column: a row ``[1, cols]``. ``tmp_tile`` is not needed."""

def col_min(input: Any, tmp_tile: Any = None) -> Any:
    """Smallest element of each column: a row ``[1, cols]``. ``tmp_tile`` is not needed."""

def row_prod(input: Any, tmp_tile: Any = None) -> Any:
    """Product of each row: a column ``[rows, 1]``. ``tmp_tile`` is not needed."""

def row_argmax(input: Any, tmp_tile: Any = None) -> Any:
    """Position of the first largest element of each row: a column ``[rows, 1]`` of INT32."""

def row_argmin(input: Any, tmp_tile: Any = None) -> Any:
    """Position of the first smallest element of each row: a column ``[rows, 1]`` of INT32."""

def col_prod(input: Any, tmp_tile: Any = None) -> Any:
    """Product of each column: a row ``[1, cols]``. ``tmp_tile`` is not needed."""

def col_argmax(input: Any, tmp_tile: Any = None) -> Any:
    """Position of the first largest element of each column: a row ``[1, cols]`` of INT32."""

def col_argmin(input: Any, tmp_tile: Any = None) -> Any:
    """Position of the first smallest element of each column: a row ``[1, cols]`` of INT32."""

def row_expand_add(lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    """Element by element: ``lhs + rhs``, with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""

def col_expand_add(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs + rhs``, with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""

def row_expand_sub(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs - rhs``, with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""

def col_expand_sub(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs - rhs``, with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""

def row_expand_mul(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs * rhs``, with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""

def col_expand_mul(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs * rhs``, with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""

def row_expand_div(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs / rhs``, with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""

def col_expand_div(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``lhs / rhs``, with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""

def row_expand_max(lhs: Any, rhs: Any) -> Any:
    """Element by element: the larger one, with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""

def col_expand_max(lhs: Any, rhs: Any) -> Any:
    """Element by element: the larger one, with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""

def row_expand_min(lhs: Any, rhs: Any) -> Any:
    """Element by element: the smaller one, with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""

def col_expand_min(lhs: Any, rhs: Any) -> Any:
    """Element by element: the smaller one, with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""

def row_expand_expdif(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``exp(lhs - rhs)``, with the column ``rhs`` ``[rows, 1]`` beside each column of ``lhs``."""

def col_expand_expdif(lhs: Any, rhs: Any) -> Any:
    """Element by element: ``exp(lhs - rhs)``, with the row ``rhs`` ``[1, cols]`` beside each row of ``lhs``."""

def row_expand(lhs: Any, rhs: Any) -> Any:
    """The column ``rhs`` ``[rows, 1]`` repeated to the shape of ``lhs``."""

def col_expand(lhs: Any, rhs: Any) -> Any:
    """The row ``rhs`` ``[1, cols]`` repeated to the shape of ``lhs``."""

def expands(target: Any, scalar: Any) -> Any:
    """A tile or tensor of the shape and dtype of ``target``, filled with a scalar."""

def matmul(lhs: Any, rhs: Any, out_dtype: Any = None, a_trans: Any = False, b_trans: Any = False, c_matrix_nz: Any = False) -> Any:
    """Matrix product of ``[M, K]`` and ``[K, N]``; FP16, BF16 and FP32 give FP32, INT8 gives INT32. ``a_trans`` and ``b_trans`` say that an operand is stored as ``[K, M]`` or ``[N, K]``; such an operand is a load."""

def matmul_acc(acc: Any, lhs: Any, rhs: Any, a_trans: Any = False, b_trans: Any = False, init_cond: Any = None) -> Any:
    """``acc + lhs @ rhs``; where ``init_cond`` holds, ``lhs @ rhs`` and ``acc`` is not read."""

def gather_row(dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: Any = False, *, valid_shape: Any = None) -> Any:
    """A block of a tensor, brought to a place of a tile in Vec or Mat; `transpose` turns it."""

def scatter_update(input: Any, dim: Any = None, index: Any = None, src: Any = None) -> Any:
    """Row `index[k]` becomes row `k` of `src`: in a tile, or in place in a tensor that may be written."""

def sort32(src: Any, idx: Any) -> Any:
    """Each block of 32 columns from the largest to the smallest, as pairs of 8 bytes: value, and position in the last 4."""

def mrgsort(src0: Any, src1: Any = None, src2: Any = None, src3: Any = None, tmp: Any = None, *, exhausted: Any = False, block_len: Any = None) -> Any:
    """Sorted runs of pairs merged: two to four tiles, or with `block_len` every four neighbouring runs of a row."""
