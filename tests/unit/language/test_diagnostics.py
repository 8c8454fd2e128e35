"""Every user mistake is one error with file, line, column and the marked source line."""

from __future__ import annotations

import pytest
from kernel_texts import in_entry, in_incore, in_scope, lowered, unmarked

from pypto.language.errors import (
    CompileError,
    KernelMemoryError,
    KernelNameError,
    KernelSyntaxError,
    KernelTypeError,
)

T = "t = pl.load(a, [0, 0], [64, 64])\n"

# name: (class, module text with the place marked, part of the message)
CASES: dict[str, tuple[type[CompileError], str, str]] = {
    # names
    "operation without support, of a dictionary": (
        KernelNameError,
        in_scope("⟦pl.alloc⟧({'a': 1})"),
        "pl.alloc is not supported",
    ),
    "sum of products not begun": (
        KernelNameError,
        in_scope(
            "for k in pl.range(4):\n    if k == 0:\n        c = pl.matmul(a, b)\n    else:\n"
            "        c = pl.matmul_acc(⟦c⟧, a, b)\nout[:] = c"
        ),
        "init_cond",
    ),
    "terms without end": (KernelSyntaxError, in_scope(f"⟦out[:] = a{' + 1.0' * 1500}⟧"), "nested too deeply"),
    "whole number beyond floats": (KernelTypeError, in_scope("out[:] = ⟦a * (10**400)⟧"), "outside the range of FP32"),
    "number beyond FP32": (KernelTypeError, in_scope("out[:] = ⟦a * 1e39⟧"), "outside the range of FP32"),
    "starred parameter": (
        KernelSyntaxError,
        "@entry\ndef main(a: pl.Tensor, *⟦o: pl.Out[pl.Tensor]⟧):\n    o[:] = a",
        "plain positional parameters only",
    ),
    "arithmetic in an annotation": (
        KernelSyntaxError,
        "N = pl.dynamic('N')\n@entry\ndef main(⟦a: 'pl.Tensor[[2 * N], pl.FP32]'⟧):\n    pass",
        "there is no arithmetic with the dimension N",
    ),
    "unknown operation": (KernelNameError, in_scope("t = ⟦pl.loda⟧(a, [0, 0], [64, 64])"), "did you mean pl.load?"),
    "operation without support": (KernelNameError, in_scope("t = ⟦pl.matmul_mx⟧(a)"), "pl.matmul_mx is not supported"),
    "undefined name": (KernelNameError, in_scope("out[:] = ⟦c⟧"), "c is not defined"),
    "near name": (KernelNameError, in_scope("out[:] = ⟦outt⟧"), "did you mean out?"),
    "unknown member of a module": (KernelNameError, in_scope("t = a * ⟦math.squirt⟧(2)"), "math has no squirt"),
    "unknown memory": (KernelNameError, in_scope(T + "u = pl.move(t, ⟦pl.Mem.Fast⟧)"), "pl.Mem has no Fast"),
    "unsupported outside value": (
        KernelNameError,
        "table = {1, 2}\n" + in_scope("out[:] = a * ⟦table⟧"),
        "table has a value of type set, which cannot enter a kernel",
    ),
    "unsupported item of a list": (
        KernelNameError,
        "sizes = [64, {2}]\n" + in_scope("t = pl.load(a, [0, 0], ⟦sizes⟧)"),
        "sizes[1] has a value of type set",
    ),
    "module as a value": (KernelNameError, in_scope("out[:] = a * ⟦math⟧"), "math is a module"),
    "plain Python function": (
        KernelNameError,
        "def helper(x):\n    return x\n" + in_scope("out[:] = ⟦helper⟧(a)"),
        "plain Python function; decorate it with @pl.jit.inline or @pl.jit.incore",
    ),
    "read before assignment": (
        KernelNameError,
        in_scope("out[:] = ⟦late⟧\nlate = a + b"),
        "late is read before it is assigned",
    ),
    "name of a loop body": (
        KernelNameError,
        in_incore("for i in pl.range(n):\n    t = a + b\nout[:] = ⟦t⟧"),
        "t is assigned only inside a loop; give it a value before the loop",
    ),
    "name of one branch": (
        KernelNameError,
        in_incore("if n > 1:\n    t = a + b\nout[:] = ⟦t⟧"),
        "t is not assigned in both branches of an if",
    ),
    "operand of a product from an earlier scope": (
        KernelNameError,
        in_entry(
            "with pl.at(level=pl.Level.CORE_GROUP):\n"
            "    t = pl.move(pl.load(h, [0, 0], [64, 64]), target_memory=pl.MemorySpace.Left)\n"
            "with pl.at(level=pl.Level.CORE_GROUP):\n    out[:] = pl.matmul(⟦t⟧, h)\nreturn out"
        ),
        "t is a tile in Left, which no scope can hand on; load or move it where it is used",
    ),
    "tile that all blocks of a launch change": (
        KernelTypeError,
        in_entry(
            "with pl.at(level=pl.Level.CORE_GROUP):\n    t = a + b\n"
            "for i in ⟦pl.spmd(2)⟧:\n    t[i, 0] = 1.0\n    pl.store(t, [0, 0], out)\nreturn out"
        ),
        "t is a tile that every block of the launch changes; store what each block makes into a tensor",
    ),
    "unknown attribute": (KernelNameError, in_scope("x2 = ⟦a.size⟧"), "it has shape and dtype"),
    # syntax
    "while on a number": (KernelTypeError, in_incore("while ⟦n⟧: pass"), "write a comparison such as n != 0"),
    "lambda": (KernelSyntaxError, in_incore("f = ⟦lambda y: y⟧"), "lambda is not part of the language"),
    "comprehension": (KernelSyntaxError, in_incore("f = ⟦[i for i in n]⟧"), "use a pl.range loop"),
    "try": (KernelSyntaxError, in_incore("if n > 1:\n    ⟦import os⟧"), "import is not part of the language"),
    "set": (KernelSyntaxError, in_incore("s = ⟦{1, 2}⟧"), "sets are not part of the language"),
    "while without an end": (
        KernelTypeError,
        in_incore("k = 0\nwhile ⟦k < n⟧:\n    out[:] = a"),
        "nothing in the loop changes its condition",
    ),
    "bounds by name": (
        KernelSyntaxError,
        in_incore("for i in pl.range(0, n, ⟦step=2⟧):\n    out[:] = a"),
        "pl.range takes its bounds by position: (start, stop, step)",
    ),
    "break of turns that are independent": (
        KernelSyntaxError,
        in_entry("⟦for i in pl.parallel(n): break⟧\nreturn out"),
        "its turns do not depend on each other",
    ),
    "break of an unrolled loop": (
        KernelTypeError,
        in_incore("⟦for i in pl.unroll(4):⟧\n    if n > i:\n        break"),
        "depends on a run-time number; use pl.range",
    ),
    "code behind continue": (
        KernelSyntaxError,
        in_incore("for i in pl.range(n):\n    continue\n    ⟦out[:] = a⟧"),
        "this is never reached; remove it",
    ),
    "break inside a scope": (
        KernelSyntaxError,
        in_entry(
            "for i in pl.range(n):\n    with pl.at(level=pl.Level.CORE_GROUP):\n        if n > i:\n"
            "            ⟦break⟧\n        out[:] = a\nreturn out"
        ),
        "break inside of a scope must be its last statement",
    ),
    "walrus": (KernelSyntaxError, in_incore("if (⟦m := n⟧) > 1:\n    pass"), "assign on a line of its own"),
    "starred argument": (KernelSyntaxError, in_incore("t = (⟦*n⟧, 1)"), "in front of an argument or of a name"),
    "double starred argument": (KernelSyntaxError, in_incore("t = pl.load(⟦**n⟧)"), "write them out"),
    "power that is no product": (KernelTypeError, in_incore("t = ⟦a ** 2.5⟧"), "takes the exponents 0.5, -0.5, -1 and"),
    "power without end": (KernelTypeError, in_incore("k = ⟦2 ** 10 ** 10⟧"), "the result is too large"),
    "power by a tile": (KernelTypeError, in_incore("t = ⟦2 ** a⟧"), "takes an exponent that is known while compiling"),
    "name of another module": (KernelNameError, in_scope("out[:] = ⟦pl.tensor.relu⟧(a)"), "has no relu; it is pl.relu"),
    "product operator": (KernelTypeError, in_incore("t = a @ ⟦n⟧"), "pl.matmul"),
    "expression without effect": (KernelSyntaxError, in_incore("⟦a + b⟧"), "this expression has no effect"),
    "loop over something else": (KernelSyntaxError, in_incore("for i in ⟦a⟧:\n    pass"), "runs over pl.range"),
    "Python's range": (KernelSyntaxError, in_incore("for i in ⟦range(4)⟧:\n    pass"), "runs over pl.range"),
    "Python's min": (KernelSyntaxError, in_incore("m = ⟦min(a, b)⟧"), "use pl.min for scalars"),
    "range outside a for": (KernelSyntaxError, in_entry("m = ⟦pl.range(4)⟧"), "pl.range can only stand in"),
    "init_values": (
        KernelSyntaxError,
        in_incore("for ⟦i⟧ in pl.range(n, init_values=(1,)):\n    pass"),
        "with init_values a loop has a variable and carried names",
    ),
    "with something else": (KernelSyntaxError, in_entry("with ⟦n⟧:\n    pass"), "can follow with"),
    "scope in a scope": (
        KernelSyntaxError,
        in_scope("with ⟦pl.at(level=pl.Level.CORE_GROUP)⟧:\n    pass"),
        "a scope cannot stand inside another scope",
    ),
    "scope in an incore function": (
        KernelSyntaxError,
        in_incore("with ⟦pl.at(level=pl.Level.CORE_GROUP)⟧:\n    pass"),
        "is a scope already; remove pl.at",
    ),
    "scope with two names": (
        KernelSyntaxError,
        in_entry("with pl.at(level=pl.Level.CORE_GROUP) as ⟦(s, t)⟧:\n    pass"),
        "the tasks of a scope get one name: `as first`",
    ),
    "return in a loop": (
        KernelSyntaxError,
        in_entry("for i in pl.range(n):\n    ⟦return out⟧\nreturn out"),
        "return inside a loop is not part of the language",
    ),
    "a path without return": (
        KernelSyntaxError,
        in_entry("if n > 1:\n    return out\n⟦k = 1⟧"),
        "the function can end without return",
    ),
    "returns that differ": (
        KernelSyntaxError,
        in_entry("if n > 1:\n    return out, out\n⟦return out⟧"),
        "returns 1 values here and 2 elsewhere",
    ),
    "compute outside a scope": (
        KernelSyntaxError,
        in_entry("t = ⟦pl.load(a, [0, 0], [64, 64])⟧\nreturn out"),
        "pl.load stands outside a scope; put it into `with pl.at(level=pl.Level.CORE_GROUP):`",
    ),
    "operator outside a scope": (KernelSyntaxError, in_entry("t = ⟦a + b⟧\nreturn out"), "stands outside a scope"),
    "store outside a scope": (KernelSyntaxError, in_entry("⟦out[:] = a⟧\nreturn out"), "stands outside a scope"),
    "workspace in a scope": (
        KernelSyntaxError,
        in_scope("w = ⟦pl.create_tensor([n, 64], pl.FP32)⟧\npl.store(pl.load(a, [0, 0], [8, 64]), [0, 0], w)"),
        "create workspaces in the entry",
    ),
    "call in a scope": (
        KernelSyntaxError,
        "@incore\ndef part(a: pl.Tensor):\n    pass\n" + in_scope("⟦part(a)⟧"),
        "call it from the entry, outside of any scope",
    ),
    "call of an entry": (
        KernelSyntaxError,
        "@entry\ndef other(a: pl.Tensor):\n    pass\n" + in_entry("⟦other(a)⟧\nreturn out"),
        "other is an entry",
    ),
    "target of an assignment": (KernelSyntaxError, in_incore("⟦a.x⟧ = b"), "only names and slices of tensors"),
    "loop with else": (
        KernelSyntaxError,
        in_incore("for i in pl.range(n):\n    pass\nelse:\n    ⟦pass⟧"),
        "else after a loop",
    ),
    # signatures
    "no annotation": (
        KernelSyntaxError,
        "@entry\ndef main(⟦a⟧):\n    pass\n",
        "parameter a: needs an annotation: pl.Tensor",
    ),
    "wrong annotation": (KernelSyntaxError, "@entry\ndef main(⟦a: str⟧):\n    pass\n", "str is not an annotation"),
    "dtype as annotation": (
        KernelSyntaxError,
        "@entry\ndef main(⟦a: pl.FP32⟧):\n    pass\n",
        "write pl.Scalar[pl.FP32]",
    ),
    "tensor without dtype": (
        KernelSyntaxError,
        "@entry\ndef main(⟦a: pl.Tensor[[1, 2]]⟧):\n    pass\n",
        "needs a shape and a dtype",
    ),
    "negative dimension": (
        KernelSyntaxError,
        "@entry\ndef main(⟦a: pl.Tensor[[-1, 2], pl.FP32]⟧):\n    pass\n",
        "dimension -1 is neither a positive int nor pl.dynamic",
    ),
    "scalar output": (
        KernelSyntaxError,
        "@entry\ndef main(⟦a: pl.Out[pl.Scalar[pl.INT32]]⟧):\n    pass\n",
        "a scalar cannot be an output",
    ),
    "variadic parameter": (KernelSyntaxError, "@entry\ndef main(*⟦rest⟧):\n    pass\n", "plain positional parameters"),
    "default of a tensor": (
        KernelSyntaxError,
        "@entry\ndef main(⟦a: pl.Tensor⟧ = None):\n    pass\n",
        "only scalars may have a default",
    ),
    "unevaluable annotation": (
        KernelSyntaxError,
        "@entry\ndef main(⟦a: 'pl.Tensr'⟧):\n    pass\n",
        "the annotation pl.Tensr cannot be evaluated",
    ),
    # types
    "missing sample": (
        KernelTypeError,
        "@entry\ndef main(⟦a: pl.Tensor⟧):\n    pass\n",
        "its shape and dtype are needed",
    ),
    "shapes differ": (
        KernelTypeError,
        in_incore(T + "out[:] = ⟦t + pl.load(b, [0, 0], [32, 64])⟧"),
        "needs tiles of one shape, got [64, 64] and [32, 64]",
    ),
    "row expansion is meant": (
        KernelTypeError,
        in_incore(T + "out[:] = ⟦pl.prelu(t, pl.row_max(t), t)⟧"),
        "to combine each row with a column use pl.row_expand_*",
    ),
    "dtypes differ": (
        KernelTypeError,
        in_incore(T + "out[:] = ⟦t + h⟧"),
        "one element type, got FP32 and FP16; use pl.cast",
    ),
    "dtype without the operation": (
        KernelTypeError,
        in_incore("c = pl.cast(a, pl.INT32)\nd = ⟦pl.exp(c)⟧"),
        "must have one of FP32, FP16",
    ),
    "store of another dtype": (
        KernelTypeError,
        in_incore("⟦pl.store(pl.load(h, [0, 0], [64, 64]), [0, 0], out)⟧"),
        "use pl.cast",
    ),
    "cast without support": (KernelTypeError, in_incore("c = ⟦pl.cast(a, pl.INDEX)⟧"), "cannot turn FP32 into INDEX"),
    "cast mode": (KernelTypeError, in_incore("c = pl.cast(a, pl.FP16, mode=⟦'up'⟧)"), "mode must be one of none, rint"),
    "inner sizes differ": (
        KernelTypeError,
        in_incore("c = ⟦pl.matmul(pl.load(h, [0, 0], [64, 32]), pl.load(h, [0, 0], [64, 64]))⟧"),
        "32 columns meet 64 rows",
    ),
    "integer operands": (KernelTypeError, in_incore("c = ⟦n / 2⟧"), "use //"),
    "remainder of a float": (KernelTypeError, in_incore("c = ⟦x % n⟧"), "% takes whole numbers, not FP32"),
    "quotient of a float": (KernelTypeError, in_incore("c = ⟦n // 0.5⟧"), "// takes whole numbers, not FP32"),
    "float beside a condition": (KernelTypeError, in_incore("c = ⟦0.5 * (n < 3)⟧"), "* does not take conditions"),
    "float as an index": (KernelTypeError, in_incore("c = a[⟦n * 0.5⟧, 0]"), "must be a whole number, but is FP32"),
    "constant out of range": (KernelTypeError, in_incore("c = pl.const(⟦300⟧, pl.INT8)"), "300 does not fit into INT8"),
    "division by zero": (KernelTypeError, in_incore("c = ⟦1 // 0⟧"), "cannot compute this"),
    "condition on a number": (KernelTypeError, in_incore("if ⟦n⟧:\n    pass"), "write a comparison such as n != 0"),
    "condition on a tile": (KernelTypeError, in_incore(T + "if ⟦t > 0⟧:\n    pass"), "use pl.sel"),
    "run-time shape": (
        KernelTypeError,
        in_incore("t = pl.load(a, [0, 0], ⟦[n, 64]⟧)"),
        "a size in shapes must be a whole number known while compiling",
    ),
    "number of offsets": (KernelTypeError, in_incore("t = pl.load(a, ⟦[0]⟧, [64, 64])"), "must be a list of 2 offsets"),
    "float offset": (KernelTypeError, in_incore("t = pl.load(a, ⟦[0.5, 0]⟧, [64, 64])"), "must be a whole number"),
    "load outside": (
        KernelTypeError,
        in_incore("t = ⟦pl.load(a, [32, 0], [64, 64])⟧"),
        "axis 0 ends at 96, but the tensor has 64",
    ),
    "valid larger than shape": (
        KernelTypeError,
        in_incore("t = ⟦pl.load(a, [0, 0], [32, 64], valid_shape=[33, 64])⟧"),
        "valid length 33 of axis 0 is outside 1..32",
    ),
    "slice outside": (KernelTypeError, in_incore("out[:] = ⟦a[0:65, :]⟧"), "axis 0 ends at 65"),
    "empty slice": (KernelTypeError, in_incore("out[:] = a[⟦5:5⟧, :]"), "the slice is empty"),
    "negative bound": (KernelTypeError, in_incore("out[:] = a[⟦-65:⟧, :]"), "the bound -65 is outside"),
    "slice with a step": (KernelTypeError, in_incore("out[:] = a[⟦0:64:2⟧, :]"), "a slice with a step"),
    "single element": (KernelTypeError, in_incore("y = a[:, ⟦3⟧]"), "write i:i+1 to keep it"),
    "too many dimensions": (KernelTypeError, in_incore("y = ⟦a[:, :, :]⟧"), "has 2 dimensions, not 3"),
    "slice of run-time size as a tile": (
        KernelTypeError,
        in_incore("⟦out[:] = a[0:n, :] + 1⟧"),
        "but what is assigned is",
    ),
    "assigned part of another size": (
        KernelTypeError,
        in_incore("⟦out[0:32, :] = a⟧"),
        "axis 0 of the slice has 32 elements, but the tile has 64",
    ),
    "assigned scalar": (KernelTypeError, in_incore("⟦out[:] = 0.0⟧"), "make one with pl.full"),
    "store into an input": (
        KernelTypeError,
        in_incore("pl.store(pl.load(b, [0, 0], [64, 64]), [0, 0], ⟦a⟧)"),
        "a is an input; to write it, annotate it with pl.Out",
    ),
    "assignment to an input": (KernelTypeError, in_scope("⟦a[:]⟧ = b"), "a is an input"),
    "read of an output": (
        KernelTypeError,
        in_incore("t = ⟦pl.load(out, [0, 0], [64, 64])⟧"),
        "annotate it with pl.InOut",
    ),
    "store arguments swapped": (
        KernelTypeError,
        in_incore(T + "pl.store(out, [0, 0], ⟦t⟧)"),
        "its order is (tile, offsets, tensor)",
    ),
    "missing argument": (KernelTypeError, in_incore("t = ⟦pl.load(a)⟧"), "pl.load misses the argument offsets"),
    "too many arguments": (KernelTypeError, in_incore("t = ⟦pl.exp(a, b)⟧"), "takes 1 positional arguments, got 2"),
    "unknown keyword": (KernelTypeError, in_incore("t = pl.load(a, [0, 0], ⟦shape=[64, 64]⟧)"), "did you mean shapes?"),
    "argument twice": (KernelTypeError, in_incore("t = pl.exp(a, ⟦input=a⟧)"), "got input twice"),
    "option without support": (
        KernelTypeError,
        in_incore("t = pl.matmul(a, b, c_matrix_nz=⟦True⟧)"),
        "is not supported: products are stored row by row",
    ),
    "not a dtype": (
        KernelTypeError,
        in_incore("t = pl.full([64, 64], ⟦'FP32'⟧, 0)"),
        "must be a dtype such as pl.FP32",
    ),
    "not a memory": (
        KernelTypeError,
        in_incore("t = pl.create_tile([64, 64], pl.FP32, target_memory=⟦3⟧)"),
        "must be a memory",
    ),
    "level": (KernelTypeError, in_entry("with ⟦pl.at(level=pl.Level.HOST)⟧:\n    pass"), "must be pl.Level.CORE_GROUP"),
    "call without argument": (
        KernelTypeError,
        "@incore\ndef part(a: pl.Tensor, m: int):\n    pass\n" + in_entry("⟦part(a)⟧\nreturn out"),
        "part misses the argument m: part(a, m)",
    ),
    "call with too many arguments": (
        KernelTypeError,
        "@incore\ndef part(a: pl.Tensor):\n    pass\n" + in_entry("⟦part(a, b)⟧\nreturn out"),
        "part takes 1 arguments, got 2",
    ),
    "call with another shape": (
        KernelTypeError,
        "@incore\ndef part(a: pl.Tensor[[32, 64], pl.FP32]):\n    pass\n" + in_entry("part(⟦a⟧)\nreturn out"),
        "part: a axis 0 is 64, but is annotated as 32",
    ),
    "call with another dtype": (
        KernelTypeError,
        "@incore\ndef part(a: pl.Tensor[[64, 64], pl.FP32]):\n    pass\n" + in_entry("part(⟦h⟧)\nreturn out"),
        "part: a is FP16, but is annotated as FP32",
    ),
    "call writes an input": (
        KernelTypeError,
        "@incore\ndef part(o: pl.Out[pl.Tensor]):\n    o[:] = pl.full([64, 64], pl.FP32, 0.0)\n"
        + in_entry("part(⟦a⟧)\nreturn out"),
        "a is an input",
    ),
    "call with a tensor for a scalar": (
        KernelTypeError,
        "@incore\ndef part(m: int):\n    pass\n" + in_entry("part(⟦a⟧)\nreturn out"),
        "part: m must be a scalar",
    ),
    "result of nothing": (
        KernelTypeError,
        "@incore\ndef part(a: pl.Tensor):\n    pass\n" + in_entry("y = ⟦part(a)⟧\nreturn out"),
        "part returns nothing",
    ),
    "return of an input": (KernelTypeError, in_entry("return ⟦a⟧"), "a is an input"),
    "return of a number": (
        KernelTypeError,
        in_incore("t = a + b\nreturn ⟦t[0, 0]⟧"),
        "a function returns its output parameters, not a run-time scalar of FP32",
    ),
    "return of a tile of run-time rows": (
        KernelTypeError,
        in_incore("t = pl.load(a, [0, 0], [64, 64], valid_shape=[n, 64])\nreturn ⟦t⟧"),
        "cannot be returned: only tiles in Vec and results of products whose valid lengths are known while compiling",
    ),
    "carried type changes": (
        KernelTypeError,
        in_incore("m = n > 0\n⟦for i in pl.range(n):⟧\n    m = x\nk = m"),
        "m is carried by the loop and changes from a run-time scalar of BOOL to a run-time scalar of FP32",
    ),
    "carried shape changes": (
        KernelTypeError,
        in_incore(T + "⟦for i in pl.range(n):⟧\n    t = pl.load(a, [0, 0], [32, 64])\nout[:] = t"),
        "t is carried by the loop and changes from a tile [64, 64] of FP32 to a tile [32, 64] of FP32",
    ),
    "text that changes in a loop": (
        KernelTypeError,
        in_incore("m = 'rint'\n⟦for i in pl.range(n):⟧\n    out[:] = pl.cast(a, pl.FP32, mode=m)\n    m = 'floor'"),
        "m changes in the loop from the string 'rint' to the string 'floor'",
    ),
    "branches differ": (
        KernelTypeError,
        in_incore(
            "⟦if n > 1:⟧\n    t = pl.load(a, [0, 0], [32, 64])\nelse:\n    t = pl.load(a, [0, 0], [64, 64])\nout[:] = t"
        ),
        "both must have one type",
    ),
    "loop variable assigned": (
        KernelTypeError,
        in_incore("i = 1\n⟦for i in pl.range(n):⟧\n    i = i + 1\nm = i"),
        "i changes in the loop",
    ),
    "step of 0": (KernelTypeError, in_incore("for i in ⟦pl.range(4, 0, 0)⟧:\n    pass"), "step must not be 0"),
    "number of bounds": (KernelTypeError, in_incore("for i in ⟦pl.range()⟧:\n    pass"), "takes 1 to 3 arguments"),
    "unpacking": (KernelTypeError, in_incore("⟦p, q, r = a.shape⟧"), "3 names for 2 values"),
    "valid lengths differ": (
        KernelTypeError,
        in_incore("t = pl.load(a, [0, 0], [64, 64], valid_shape=[n, 64])\nout[:] = ⟦t + b⟧"),
        "the valid rows are not known to be equal: n and 64",
    ),
    "unused value of math": (KernelTypeError, in_incore("t = ⟦math.floor(x)⟧"), "takes numbers known while compiling"),
    "augmented tensor": (KernelTypeError, in_incore("⟦out += a⟧"), "assign to a slice of it: out[:] ="),
    # passes
    "output that is never written": (
        KernelTypeError,
        "@incore\ndef ⟦part⟧(a: pl.Tensor, o: pl.Out[pl.Tensor]):\n    pass\n" + in_entry("part(a, out)\nreturn out"),
        "o is an output of part, but nothing is stored into it",
    ),
    "read of a tile without values": (
        KernelTypeError,
        in_incore("t = pl.create_tile([64, 64], dtype=pl.FP32)\nout[:] = ⟦t + a⟧"),
        "reads t, which has no values yet; use pl.full",
    ),
    "one tile too large": (
        KernelMemoryError,
        in_incore(T + "big = ⟦pl.full([512, 128], pl.FP32, 0.0)⟧\npl.store(big[0:64, 0:64], [0, 0], out)"),
        "the tile big [512, 128] FP32 (256 KiB) does not fit into Vec, which has 192 KiB",
    ),
    "tensor too large beside code for tiles": (
        KernelMemoryError,
        "@entry\ndef main(a: pl.Tensor[[512, 512], pl.FP32], o: pl.Out[pl.Tensor[[512, 512], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n        t = pl.load(a, [0, 0], [16, 64])\n"
        "        pl.store(t, [0, 0], o)\n        o[:] = ⟦a⟧ + 1.0\n    return o\n",
        "a is taken as a whole here, as a tile [512, 512] of FP32, and with it the scope does not fit on chip; "
        "put this into a scope of its own, apart from the code for tiles in line 7",
    ),
    "tiles too large together": (
        KernelMemoryError,
        in_incore(
            T + "p = pl.full([256, 64], pl.FP32, 0.0)\nq = pl.full([256, 64], pl.FP32, 1.0)\n"
            "r = ⟦pl.full([256, 128], pl.FP32, 2.0)⟧\n"
            "pl.store((p + q)[0:64, :], [0, 0], out)\npl.store(r[0:64, 0:64], [0, 0], out)"
        ),
        "part needs 256 KiB of Vec here, which has 192 KiB; the largest tiles: r [256, 128] FP32 (128 KiB, line 9), p",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_mistake_is_one_error_at_its_place(name: str) -> None:
    kind, text, part = CASES[name]
    marked = unmarked(text)
    with pytest.raises(CompileError) as caught:
        lowered(marked.text)
    error = caught.value
    assert part in error.message
    assert type(error) is kind
    assert (error.line, error.column) == (marked.line, marked.column)
    *_, source, marker = str(error).splitlines()
    assert source == error.source_line
    assert marker == " " * (marked.column - 1) + "^" * marker.count("^")
    # The mark begins at the place and, as far as the node ends on this line, covers what was marked.
    assert marker.count("^") >= marked.width


def test_message_has_place_function_and_mark() -> None:
    with pytest.raises(CompileError) as caught:
        lowered(in_scope("out[:] = a + 'x'"))
    first, source, marker = str(caught.value).splitlines()
    assert first == (
        f"{caught.value.filename}:7:18: error: the right side of + must be a tile or a tensor, "
        "not the string 'x' (in main)"
    )
    assert source == "        out[:] = a + 'x'"
    assert marker == "                 ^^^^^^^"


def test_mark_stands_below_wide_text_and_tabs() -> None:
    text = "@entry\ndef main(a: pl.Tensor[[64, 64], pl.FP32]):\n\twords = 'ß→ü'; y = (words, c)\n"
    with pytest.raises(CompileError) as caught:
        lowered(text)
    assert caught.value.column == text.splitlines()[2].index("c)") + 1
    assert str(caught.value).splitlines()[-1] == "\t" + " " * (caught.value.column - 2) + "^"
