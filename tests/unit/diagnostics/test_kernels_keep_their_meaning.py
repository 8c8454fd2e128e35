"""No pass changes what the kernels of this project compute. The compiled ones are compared in the integration tests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from pypto.diagnostics import check_precision
from pypto.diagnostics.samples import sample_arguments
from pypto.ir.nodes import FunctionKind
from pypto.jit.function import JITFunction

ROOT = Path(__file__).resolve().parents[3]
SIZES = {"N": 40, "S": 96, "M": 72, "T": 96, "B": 2}
SCALARS = {"seq_len": 90}

sys.path.insert(0, str(ROOT))


def entries() -> list[Any]:
    """Every entry of ``kernels/`` that runs on one chip."""
    found = []
    for path in sorted((ROOT / "kernels").glob("[a-z]*.py")):
        module = importlib.import_module(f"kernels.{path.stem}")
        for name, value in sorted(vars(module).items()):
            own = isinstance(value, JITFunction) and value.function.__module__ == module.__name__
            if own and value.kind is FunctionKind.ORCHESTRATION:
                found.append(pytest.param(value, id=f"{path.stem}.{name}"))
    return found


@pytest.mark.parametrize("function", entries())
def test_every_pass_keeps_what_the_kernel_computes(function: JITFunction) -> None:
    from pypto.jit.request import capture

    parameters = capture(function, (), {}, None).specialization.parameters
    sizes = {str(dim): SIZES.get(str(dim), 64) for p in parameters for dim in p.shape or () if not isinstance(dim, int)}
    arguments = sample_arguments(parameters, sizes=sizes, scalars=SCALARS)
    report = check_precision(function, *arguments, execute=False)
    assert report.ok, str(report)
    assert not any(check.problem for check in report.checks), str(report)
