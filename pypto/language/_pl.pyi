"""Written by tools/op_tables.py; do not edit."""

from typing import Any

from pypto.ir.types import *

def range(*args: Any, init_values: Any = None) -> Any:
    """Bounds of a for loop: ``(stop)``, ``(start, stop)`` or ``(start, stop, step)``; rebound names are carried."""

def parallel(*args: Any, init_values: Any = None) -> Any:
    """A loop like ``pl.range`` whose turns do not depend on each other; what runs at once follows from the data."""

def unroll(*args: Any) -> Any:
    """A loop over numbers known while compiling; its body is written out once for each."""

def pipeline(*args: Any, stage: Any, init_values: Any = None) -> Any:
    """A loop like ``pl.range`` whose turns may overlap, ``stage`` of them."""

def while_(*, init_values: Any = None) -> Any:
    """A loop with a condition, in entries: ``for (n,) in pl.while_(init_values=(8,)):``, ``pl.cond(...)`` first."""

def yield_(*values: Any) -> Any:
    """The values for the next turn of a loop with ``init_values``, or of a branch; gives the values."""

def cond(condition: Any) -> Any:
    """The condition of a ``pl.while_`` loop; first statement of its body."""

def static_assert(condition: Any, msg: Any = '') -> Any:
    """An error while compiling unless a condition on known numbers holds."""

def static_print(*args: Any) -> Any:
    """Print what expressions stand for while compiling, to the standard error output."""

def at(level: Any, role: Any = None, *, optimizations: Any = None, deps: Any = None, no_dep_args: Any = None, dumps: Any = None, allow_early_resolve: Any = False, name_hint: Any = '', windowize: Any = False) -> Any:
    """A scope of an entry whose body runs on a core: ``with pl.at(level=pl.Level.CORE_GROUP):``."""

def const(value: Any, dtype: Any) -> Any:
    """A scalar of a certain dtype."""

def func_attr(attrs: Any) -> Any:
    """Attributes of a function, as its first statement: ``split``, ``split_aiv``, ``stationary``; change no number."""

def cluster(*, name_hint: Any = '') -> Any:
    """Launches that belong together: ``with pl.cluster() as tasks:``."""

def spmd(core_num: Any, *, sync_start: Any = False, name_hint: Any = '', optimizations: Any = None, deps: Any = None, allow_early_resolve: Any = False, predicate: Any = None) -> Any:
    """A scope that runs once for each of ``core_num`` blocks: ``for block in pl.spmd(4):`` or ``with pl.spmd(4):``."""

def split_aiv(n: Any, *, mode: Any) -> Any:
    """A part of a scope that both vector cores run: ``for core in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):``. UP_DOWN and LEFT_RIGHT: each has half of the rows or columns of the tiles; NONE: each has tiles of its own."""

def submit(*args: Any, **kwargs: Any) -> Any:
    """``result, tasks = pl.submit(kernel, *arguments, deps=[...])``: a call of a kernel whose tasks get a name."""

def spmd_submit(*args: Any, **kwargs: Any) -> Any:
    """``pl.submit`` once for each block: ``result, tasks = pl.spmd_submit(kernel, *arguments, core_num=4)``."""

def split(mode: Any, *, slot_num: Any = None) -> Any:
    """How vector cores share a scope; changes no number."""

def cross_core_slot(*, slot_num: Any) -> Any:
    """How far one kind of core may run ahead of the other; changes no number."""

def create_tensor(shape: Any, dtype: Any, layout: Any = None, manual_dep: Any = False, init_value: Any = None) -> Any:
    """A workspace in global memory that lives until the run ends; entries only. Its elements have no values yet."""

def dump_tag(tensor: Any) -> Any:
    """The tensor, marked for dumps of runs on devices; on the simulator make it an output instead."""

def slice(input: Any, shape: Any, offset: Any, valid_shape: Any = None, drop_dims: Any = None, pad_value: Any = None, clamp: Any = False) -> Any:
    """A window of a tensor (a view) or of a tile (a copy)."""

def reshape(input: Any, shape: Any) -> Any:
    """The same elements in another shape: another handle of a tensor, or a tile."""

def transpose(input: Any, axis1: Any, axis2: Any, tmp_tile: Any = None) -> Any:
    """Rows and columns of a tile swapped."""

def set_validshape(input: Any, valid_rows: Any, valid_cols: Any) -> Any:
    """The tile with other valid lengths."""

def load(tensor: Any, offsets: Any, shapes: Any, valid_shape: Any = None, target_memory: Any = MemorySpace.Vec, clamp: Any = False) -> Any:
    """A tile from a window of a tensor. Args: offsets: one per dimension of the tensor, in elements; may be run-time values. shapes: known sizes of the window; all but the last two are 1. valid_shape: sizes that hold data, at most ``shapes``; may be run-time values. target_memory: Vec or Mat. Unless given, a tile that only matrix operations use goes to Mat, others to Vec. clamp: of the window, only what the tensor has there holds data."""

def store(tile: Any, offsets: Any, output_tensor: Any, shapes: Any = None, *, atomic: Any = None) -> Any:
    """Write the valid part of a tile into a tensor; gives the tensor."""

def read(src: Any, offset: Any) -> Any:
    """One element as a scalar: of a tile or tensor on a core, or of an input in the entry, before tasks run."""

def write(dst: Any, offset: Any, value: Any) -> Any:
    """Write one number into a tensor, on a core; gives the tensor."""

def concat(src0: Any, src1: Any) -> Any:
    """Two tensors or tiles beside each other: the columns of the first, then those of the second."""

def move(tile: Any, target_memory: Any, blayout: Any = None, slayout: Any = None) -> Any:
    """The tile in another on-chip memory."""

def create(shape: Any, dtype: Any, target_memory: Any = MemorySpace.Vec, transpose: Any = None, *, flat_layout: Any = None) -> Any:
    """A tile without values yet."""

def create_tile(shape: Any, dtype: Any, target_memory: Any = MemorySpace.Vec) -> Any:
    """A tile without values yet."""

def full(shape: Any, dtype: Any, value: Any) -> Any:
    """A tile filled with a scalar."""

def alloc(memory_space: Any, size: Any, *, pinned: Any = False) -> Any:
    """Not supported: ptoas places every tile by itself."""

def aiv_shard(x: Any, span: Any = None) -> Any:
    """This vector core's half of a tile of the matrix core, in ``pl.split_aiv``; all of it under ``SplitMode.NONE``."""

def aic_gather(x: Any, span: Any = None) -> Any:
    """One tile of the halves that the vector cores of ``pl.split_aiv`` made, for use behind the region."""

def fillpad_inplace(tile: Any, pad_value: Any = PadValue.zero) -> Any:
    """As ``fillpad``, in the memory of the tile."""

def get_block_idx() -> Any:
    """Number of this block among those of a launch; 0 outside of one."""

def get_subblock_idx() -> Any:
    """Number of this vector core within its block; 0 outside of `pl.split_aiv`."""

def get_block_num() -> Any:
    """How many blocks the launch has; 1 outside of one."""

def transpose_view(tile: Any) -> Any:
    """Rows and columns of a tile swapped, in the same memory."""

def assemble(target: Any, source: Any, offset: Any, *, atomic: Any = None) -> Any:
    """Write a tile or tensor into a tensor at an offset; gives the tensor."""

def reinterpret_view(data: Any, dtype: Any, *, shape: Any = None) -> Any:
    """The same bytes as elements of another type."""

def fillpad(value: Any, pad_value: Any = PadValue.zero) -> Any:
    """The tile with a value where it is not valid; valid throughout."""

def fillpad_expand(value: Any, shape: Any, pad_value: Any = PadValue.zero) -> Any:
    """A larger tile, filled with a value where ``value`` does not reach."""

def extract(src: Any, index_row: Any, index_col: Any, shape: Any, *, target_memory: Any) -> Any:
    """A part of a tile, in another memory."""

def ci(start: Any, shape: Any, dtype: Any = INT32, descending: Any = False) -> Any:
    """A row of whole numbers that count up, or down, from ``start``."""

def tri(diagonal: Any, shape: Any, valid_shape: Any = None, dtype: Any = INT32, upper: Any = False) -> Any:
    """A triangle of ones: where ``column <= row + diagonal``, or above it."""

def random(key0: Any, key1: Any, counter0: Any, counter1: Any, counter2: Any, counter3: Any, shape: Any, valid_shape: Any = None, dtype: Any = UINT32, rounds: Any = 10) -> Any:
    """Random bits from a counter and a key."""

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

def rem(lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    """Element by element: the remainder of ``lhs / rhs``, with the sign of ``rhs``."""

def adds(lhs: Any, rhs: Any) -> Any:
    """``lhs + rhs`` of a tile and a scalar, element by element."""

def subs(lhs: Any, rhs: Any) -> Any:
    """``lhs - rhs`` of a tile and a scalar, element by element."""

def muls(lhs: Any, rhs: Any) -> Any:
    """``lhs * rhs`` of a tile and a scalar, element by element."""

def divs(lhs: Any, rhs: Any) -> Any:
    """``lhs / rhs`` of a tile and a scalar, element by element."""

def minimums(lhs: Any, rhs: Any) -> Any:
    """The smaller one of a tile and a scalar, element by element."""

def maximums(lhs: Any, rhs: Any) -> Any:
    """The larger one of a tile and a scalar, element by element."""

def fmods(lhs: Any, rhs: Any) -> Any:
    """The remainder of ``lhs / rhs``, with the sign of ``lhs``, for a tile and a scalar."""

def rems(lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    """The remainder of ``lhs / rhs``, with the sign of ``rhs``, for a tile and a scalar."""

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

def lrelu(tile: Any, slope: Any) -> Any:
    """``tile`` where it is positive, elsewhere ``tile * slope``, for a tile and a scalar."""

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

def relu(input: Any) -> Any:
    """The larger one of each element and 0."""

def sin(input: Any) -> Any:
    """Sine of each element, in radians."""

def cos(input: Any) -> Any:
    """Cosine of each element, in radians."""

def not_(input: Any) -> Any:
    """The bits that each element has not."""

def addc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """Element by element: ``lhs + rhs + rhs2``."""

def addsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """Element by element: ``lhs + rhs + rhs2``; ``rhs`` is a scalar."""

def subc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """Element by element: ``lhs - rhs + rhs2``, as PTO-ISA has it."""

def subsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """Element by element: ``lhs - rhs + rhs2``, as PTO-ISA has it; ``rhs`` is a scalar."""

def prelu(tile: Any, slope: Any, tmp: Any = None) -> Any:
    """Element by element: ``tile`` where it is positive, elsewhere ``tile * slope``."""

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

def cmps(lhs: Any, rhs: Any, cmp_type: Any = 0) -> Any:
    """For a tile and a scalar: 1 where the comparison holds, else 0: ``cmp_type`` 0 is ==, 1 !=, 2 <, 3 <=, 4 >, 5 >=, or their names eq to ge."""

def sel(mask: Any, lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    """``lhs`` where the mask is not 0, elsewhere ``rhs``. ``mask`` has a number for each element, or one bit for each in whole numbers of 8 bits, the lowest bit first."""

def sels(mask: Any, src: Any, tmp: Any, scalar: Any) -> Any:
    """``src`` where the mask is not 0, elsewhere the scalar. ``mask`` has a number for each element, or one bit for each in whole numbers of 8 bits, the lowest bit first."""

def cast(input: Any, target_type: Any, mode: Any = 'round') -> Any:
    """Another element type, for tiles and scalars. ``mode``, for whole numbers: none, rint, round, floor, ceil, trunc."""

def max(lhs: Any, rhs: Any) -> Any:
    """The larger one of two scalars, or element by element of tiles."""

def min(lhs: Any, rhs: Any) -> Any:
    """The smaller one of two scalars, or element by element of tiles."""

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

def batch_matmul(lhs: Any, rhs: Any, out_dtype: Any = None, a_trans: Any = False, b_trans: Any = False) -> Any:
    """Matrix products of ``[..., M, K]`` and ``[..., K, N]``, one for each index of the leading dimensions, which are repeated as NumPy does."""

def batch_matmul_acc(acc: Any, lhs: Any, rhs: Any) -> Any:
    """``acc`` plus the matrix products of ``[..., M, K]`` and ``[..., K, N]``."""

def matmul_bias(lhs: Any, rhs: Any, bias: Any) -> Any:
    """``lhs @ rhs + bias``, with one row of bias for all rows."""

def matmul_mx(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
    """Not supported: ptoas 0.1.1 has no scaled products and no element types of fewer than 8 bits."""

def matmul_mx_acc(acc: Any, lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
    """Not supported: ptoas 0.1.1 has no scaled products and no element types of fewer than 8 bits."""

def matmul_mx_bias(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, bias: Any) -> Any:
    """Not supported: ptoas 0.1.1 has no scaled products and no element types of fewer than 8 bits."""

def gemv(lhs: Any, rhs: Any, acc_phase: Any = 'unspecified') -> Any:
    """A row ``[1, K]`` times a matrix ``[K, N]``."""

def gemv_acc(acc: Any, lhs: Any, rhs: Any, acc_phase: Any = 'unspecified') -> Any:
    """``acc`` plus a row times a matrix."""

def gemv_bias(lhs: Any, rhs: Any, bias: Any, acc_phase: Any = 'unspecified') -> Any:
    """A row times a matrix plus a row of bias."""

def gather_row(dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: Any = False, *, valid_shape: Any = None) -> Any:
    """A block of a tensor, brought to a place of a tile in Vec or Mat; `transpose` turns it."""

def scatter_update(input: Any, dim: Any = None, index: Any = None, src: Any = None) -> Any:
    """Row `index[k]` becomes row `k` of `src`: in a tile, or in place in a tensor that may be written."""

def sort32(src: Any, idx: Any) -> Any:
    """Each block of 32 columns from the largest to the smallest, as pairs of 8 bytes: value, and position in the last 4."""

def mrgsort(src0: Any, src1: Any = None, src2: Any = None, src3: Any = None, tmp: Any = None, *, exhausted: Any = False, block_len: Any = None) -> Any:
    """Sorted runs of pairs merged: two to four tiles, or with `block_len` every four neighbouring runs of a row."""

def gather(src: Any, indices: Any, tmp: Any) -> Any:
    """`out[i, j]` is the element of `src` at the flat position `indices[i, j]`; outside is an error of the run."""

def gatherb(src: Any, offset: Any, *, output_dtype: Any = None) -> Any:
    """Blocks of 32 bytes of `src` at byte offsets."""

def gather_mask(src: Any, mask_pattern: Any, *, output_dtype: Any = None) -> Any:
    """Every second or fourth column of each row, as `pl.MaskPattern` says."""

def gather_compare(src: Any, kvalue: Any, tmp: Any, *, cmp_mode: Any = 'eq', offset: Any = 0, out_cols: Any, count_dtype: Any = None) -> Any:
    """For each row the flat positions of the elements that equal (`gt`: exceed) its key, from `offset` on, and their number."""

def scatter(dst: Any, src: Any, indexes: Any) -> Any:
    """`dst` with `dst[indexes[i, j], j] = src[i, j]`; the last one wins."""

def scatter_mask(dst: Any, src: Any, mask_pattern: Any) -> Any:
    """The elements of `src` in the columns that a pattern chooses, zeros in the others."""

def mscatter(src: Any, idx: Any, output_tensor: Any) -> Any:
    """Elements written to a tensor at the flat positions that an index names; outside is an error of the run."""

def mgather(mem: Any, idx: Any, coalesce: Any = 'row', *, gather_oob: Any = 'undefined', target_memory: Any = MemorySpace.Vec, scratch: Any = None, valid_shape: Any = None) -> Any:
    """Rows of a tensor, or (`elem`) its elements at flat positions; `gather_oob`: undefined (an error), clamp, wrap, zero."""
