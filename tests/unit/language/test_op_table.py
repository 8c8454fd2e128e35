"""The table of operations: every documented name is in it, and what is written from it is up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_texts import in_scope, lowered

import pypto.language as pl
from pypto.ir.ops.registry import all_definitions
from pypto.ir.ops.user_names import UserName, user_name, user_names
from pypto.language.errors import KernelNameError
from pypto.language.stubs import Operation, operations

_ROOT = Path(__file__).resolve().parents[3]
# What PyPTO documents.
_PL = """
abs add addc adds addsc aic_gather aiv_shard alloc and_ ands assemble at batch_matmul batch_matmul_acc cast ci cluster
cmp cmps col_argmax col_argmin col_expand col_expand_add col_expand_div col_expand_expdif col_expand_max
col_expand_min col_expand_mul col_expand_sub col_max col_min col_prod col_sum concat cond const cos create
cross_core_slot div divs exp expands extract fillpad fillpad_expand fillpad_inplace fmod fmods full func_attr gather
gather_compare gather_mask gather_row gatherb gemv gemv_acc gemv_bias get_block_idx get_block_num get_subblock_idx
load log lrelu matmul matmul_acc matmul_bias matmul_mx matmul_mx_acc matmul_mx_bias max maximum maximums mgather min
minimum minimums move mrgsort mscatter mul muls neg not_ or_ ors parallel part_add part_max part_min part_mul pipeline
prelu random range read recip reinterpret_view relu rem rems reshape row_argmax row_argmin row_expand row_expand_add
row_expand_div row_expand_expdif row_expand_max row_expand_min row_expand_mul row_expand_sub row_max row_min row_prod
row_sum rsqrt scatter scatter_mask scatter_update sel sels set_validshape shl shls shr shrs sin slice sort32 split
split_aiv spmd spmd_submit sqrt static_assert static_print store sub subc submit subs subsc transpose transpose_view
tri unroll while_ write xor xors yield_
"""
_TENSOR = """
abs add adds alloc and_ ands assemble cast ci cmp col_argmax col_argmin col_expand col_expand_add col_expand_div
col_expand_expdif col_expand_max col_expand_min col_expand_mul col_expand_sub col_max col_min col_prod col_sum concat
cos create create_l1 dim div divs dump_tag exp expand_clone expands fillpad fillpad_expand fmod fmods full gather
gather_row get_block_idx get_block_num get_subblock_idx log matmul matmul_acc maximum minimum mrgsort mul muls neg
no_dep not_ or_ ors paged_gather part_add part_max part_min part_mul random read recip reinterpret_view reshape
row_argmax row_argmin row_expand row_expand_add row_expand_div row_expand_expdif row_expand_max row_expand_min
row_expand_mul row_expand_sub row_max row_min row_prod row_sum rsqrt scatter scatter_update set_validshape shl shls
shr shrs sin slice sort32 sqrt sub subs transpose view write xor xors
"""
PL_NAMES, TENSOR_NAMES = _PL.split(), _TENSOR.split()
UNSUPPORTED = [entry for space in ("pl", "tensor") for entry in user_names(space).values() if entry.unsupported]


def test_every_documented_name_exists() -> None:
    assert [name for name in PL_NAMES if not isinstance(getattr(pl, name), Operation)] == []
    assert [name for name in TENSOR_NAMES if not isinstance(getattr(pl.tensor, name), Operation)] == []
    assert set(dir(pl.tile)) > {"add", "row_max", "sel", "mgather"}


def test_what_is_written_from_the_table_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, _ROOT / "tools/op_tables.py", "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_operations_that_names_become_exist() -> None:
    known = all_definitions()
    for space in ("pl", "tensor"):
        for entry in user_names(space).values():
            assert set(entry.ops) <= set(known), entry.name
            assert entry.doc[-1] in ".`", entry.name


@pytest.mark.parametrize("entry", UNSUPPORTED, ids=[f"{e.key}" for e in UNSUPPORTED])
def test_names_without_support_say_why(entry: UserName) -> None:
    with pytest.raises(KernelNameError) as caught:
        lowered(in_scope(f"pl.{'tensor.' if 'pl' not in entry.spaces else ''}{entry.name}(a)"))
    assert f"{entry.label} is not supported: {entry.unsupported}" == caught.value.message
    assert entry.unsupported[-1] != "."


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="add is registered twice in pl"):
        user_name("add", "lhs, rhs", "Again.")


def test_other_names_of_parameters_are_known() -> None:
    operation = operations("pl")["row_expand_sub"]
    assert (operation.also["tile"], operation.also["row_vec"]) == (0, 1)
    lowered(in_scope("out[:] = pl.row_expand_sub(tile=a, row_vec=pl.row_max(tile=b))"))


# Element-wise work, reductions and expansions: tests/integration/ops makes kernels of all of them from the table.
FROM_THE_TABLE = ("elementwise", "reductions")


def test_every_supported_operation_is_used_by_a_test() -> None:
    sources = [path for path in (_ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    unused = [
        entry.label
        for space in ("pl", "tensor")
        for entry in user_names(space).values()
        if not entry.unsupported
        and entry.family not in FROM_THE_TABLE
        and not re.search(rf"\bpl\.(tensor\.|tile\.)?{entry.name}\b", texts)
    ]
    assert unused == []
