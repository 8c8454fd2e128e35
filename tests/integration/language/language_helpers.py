"""A function that kernels of another module use."""

import pypto.language as pl


@pl.jit.inline
def weights(scores, high):
    return pl.exp(pl.row_expand_sub(scores, high))
