"""What beginners write first, and the advice they get."""

from __future__ import annotations

import pytest
from kernel_texts import in_scope, lowered

import pypto.language as pl
from pypto.ir.printer import print_program
from pypto.language.errors import CompileError


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("out[:] = a ** 2.5", "takes the exponents 0.5, -0.5, -1 and 1 to 16, not 2.5; use pl.exp and pl.log"),
        ("print(a.shape)", "pl.static_print shows what is known while compiling"),
        ("out[:] = np.exp(a)", "and functions under @pl.jit; use pl.exp"),
        ("out[:] = np.hypot(a, b)", "and functions under @pl.jit (in main)"),
    ],
)
def test_python_and_numpy_in_a_kernel(line: str, advice: str) -> None:
    with pytest.raises(CompileError) as caught:
        lowered("import numpy as np\n" + in_scope(line))
    assert advice in str(caught.value)


def test_parentheses_for_brackets() -> None:
    with pytest.raises(TypeError, match=r"with brackets: pl\.Tensor\[\[rows, cols\], dtype\]"):
        pl.Tensor([128, 64], pl.FP32)


def test_a_program_prints_as_text() -> None:
    program = lowered(in_scope("out[:] = a + b"))
    assert str(program) == print_program(program)
    assert str(program).startswith("entry @main\n")
