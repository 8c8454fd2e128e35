"""``pl.tensor``: operations on tensors as a whole, under the names that PyPTO has for them.

Those that exist under the same name for tensors and tiles are the same operations as in ``pl``.
"""

from __future__ import annotations

from typing import Any

from pypto.language.ops import abs as abs
from pypto.language.ops import add as add
from pypto.language.ops import adds as adds
from pypto.language.ops import assemble as assemble
from pypto.language.ops import cast as cast
from pypto.language.ops import col_expand as col_expand
from pypto.language.ops import col_expand_add as col_expand_add
from pypto.language.ops import col_expand_div as col_expand_div
from pypto.language.ops import col_expand_mul as col_expand_mul
from pypto.language.ops import col_expand_sub as col_expand_sub
from pypto.language.ops import col_max as col_max
from pypto.language.ops import col_min as col_min
from pypto.language.ops import col_sum as col_sum
from pypto.language.ops import concat as concat
from pypto.language.ops import create_tensor
from pypto.language.ops import div as div
from pypto.language.ops import divs as divs
from pypto.language.ops import exp as exp
from pypto.language.ops import expands as expands
from pypto.language.ops import full as full
from pypto.language.ops import log as log
from pypto.language.ops import matmul as matmul
from pypto.language.ops import matmul_acc as matmul_acc
from pypto.language.ops import maximum as maximum
from pypto.language.ops import minimum as minimum
from pypto.language.ops import mul as mul
from pypto.language.ops import muls as muls
from pypto.language.ops import neg as neg
from pypto.language.ops import read as read
from pypto.language.ops import recip as recip
from pypto.language.ops import reshape as reshape
from pypto.language.ops import row_expand as row_expand
from pypto.language.ops import row_expand_add as row_expand_add
from pypto.language.ops import row_expand_div as row_expand_div
from pypto.language.ops import row_expand_max as row_expand_max
from pypto.language.ops import row_expand_min as row_expand_min
from pypto.language.ops import row_expand_mul as row_expand_mul
from pypto.language.ops import row_expand_sub as row_expand_sub
from pypto.language.ops import row_max as row_max
from pypto.language.ops import row_min as row_min
from pypto.language.ops import row_sum as row_sum
from pypto.language.ops import rsqrt as rsqrt
from pypto.language.ops import set_validshape as set_validshape
from pypto.language.ops import slice as slice
from pypto.language.ops import sqrt as sqrt
from pypto.language.ops import sub as sub
from pypto.language.ops import subs as subs
from pypto.language.ops import transpose as transpose
from pypto.language.ops import write as write
from pypto.language.stubs import operation

create = create_tensor


@operation
def dim(tensor: Any, axis: int) -> Any:
    """Size of a dimension of a tensor."""
