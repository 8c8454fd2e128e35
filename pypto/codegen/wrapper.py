"""The C++ around one kernel: takes the task's arguments apart, computes what stays constant, calls what ptoas made."""

from __future__ import annotations

from pypto.codegen.incore import Kernel
from pypto.codegen.scalars import Leaf, cpp_type
from pypto.codegen.tiles import CPP_NAMES
from pypto.ir.nodes import Function
from pypto.ir.types import INDEX, DType


def print_wrapper(function: Function, kernel: Kernel) -> str:
    """Source of the shared object of one incore function; includes ``ptoas/<name>.cpp``."""
    arguments = kernel.arguments
    numbers: list[tuple[int, DType]] = []
    for _, expr in arguments.scalars:
        if isinstance(expr, Leaf):
            numbers.append((expr.index, expr.dtype))
    numbers += [(arguments.declared + i, INDEX) for i in range(len(arguments.extras))]
    lines = [
        '#include "pypto/kernel.h"',
        '#include "pypto/scalar.h"',
        *(['#include "pypto/functions.h"'] if kernel.functions else []),
        *(['#include "pypto/gather.h"'] if kernel.templates else []),
        f'#include "ptoas/{function.name}.cpp"',
        "",
        'extern "C" void kernel_entry(__gm__ int64_t* slots) {',
        "  const pypto::Args args{slots};",
    ]
    lines += [f"  const {cpp_type(t)} a{i} = args.value<{cpp_type(t)}>({i});" for i, t in numbers]
    passed = [
        f"args.pointer<{CPP_NAMES[window.dtype]}>({index})"
        for window, index in zip(arguments.windows, arguments.pointers, strict=True)
    ]
    passed += [f"{slot.cpp}{{}}" if slot.initial == "{}" else slot.initial for slot in kernel.slots]
    lines.append(f"  {kernel.symbol}(")
    lines += [f"      {text}{',' if i + 1 < len(passed) else ');'}" for i, text in enumerate(passed)]
    lines += ["}", ""]
    return "\n".join(lines)
