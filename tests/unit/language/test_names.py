"""The names of ``pypto.language``: what they are, and what Python gets when it calls them."""

from __future__ import annotations

import inspect

import pytest

import pypto.language as pl
from pypto.ir.ops.registry import all_definitions
from pypto.language.errors import OutsideKernelError
from pypto.language.stubs import Operation

OPERATIONS = sorted(name for name in dir(pl) if isinstance(getattr(pl, name), Operation))


def test_every_listed_name_exists() -> None:
    for name in dir(pl):
        assert getattr(pl, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pl.nothing


@pytest.mark.parametrize("name", OPERATIONS)
def test_calling_an_operation_says_where_it_belongs(name: str) -> None:
    with pytest.raises(OutsideKernelError, match=f"pl.{name} is compiled, not run"):
        getattr(pl, name)()


def test_operations_have_documentation_and_their_name() -> None:
    for name in OPERATIONS:
        operation = getattr(pl, name)
        assert operation.name == name
        assert operation.__doc__


@pytest.mark.parametrize(
    ("operation", "signature"),
    [
        (pl.load, "(tensor, offsets, shapes, valid_shape=None, target_memory=<MemorySpace.Vec: 'Vec'>, clamp=False)"),
        (pl.store, "(tile, offsets, output_tensor, shapes=None, *, atomic=None)"),
        (pl.matmul, "(lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, c_matrix_nz=False)"),
        (pl.matmul_acc, "(acc, lhs, rhs, a_trans=False, b_trans=False, init_cond=None)"),
        (pl.slice, "(input, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False)"),
        (pl.full, "(shape, dtype, value)"),
        (pl.cast, "(input, target_type, mode='round')"),
        (pl.row_max, "(input, tmp_tile=None)"),
        (pl.tensor.create, "(shape, dtype, layout=None, manual_dep=False, init_value=None)"),
        (pl.tensor.dim, "(tensor, axis)"),
    ],
)
def test_signatures_are_those_users_type(operation: Operation, signature: str) -> None:
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in operation.signature.parameters.values()]
    assert str(inspect.Signature(parameters)) == signature


def test_names_with_one_meaning_are_one_object() -> None:
    assert pl.tensor.add is pl.tile.add is pl.add
    assert pl.tensor.gather is not pl.gather
    assert pl.tile.gather is pl.gather


def test_operations_of_the_same_name_exist_in_the_registry() -> None:
    known = all_definitions()
    for name in OPERATIONS:
        if name.startswith(("row_", "col_")) and not getattr(pl, name).unsupported:
            assert f"tile.{name}" in known


def test_memory_spaces_have_a_short_name() -> None:
    assert pl.Mem is pl.MemorySpace
    assert [m.name for m in pl.Mem] == ["DDR", "Vec", "Mat", "Left", "Right", "Acc", "Bias"]
