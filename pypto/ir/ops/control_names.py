"""Control, scopes and what acts while compiling: names that the parser handles by name."""

from __future__ import annotations

from pypto.ir.ops.user_names import PL, user_name

user_name(
    "range",
    "*args, init_values=None",
    ("Bounds of a for loop: ``(stop)``, ``(start, stop)`` or ``(start, stop, step)``; rebound names are carried."),
    (PL,),
)
user_name(
    "parallel",
    "*args, init_values=None",
    ("A loop like ``pl.range`` whose turns do not depend on each other; what runs at once follows from the data."),
    (PL,),
)
user_name(
    "unroll",
    "*args",
    "A loop over numbers known while compiling; its body is written out once for each.",
    (PL,),
)
user_name(
    "pipeline",
    "*args, stage, init_values=None",
    "A loop like ``pl.range`` whose turns may overlap, ``stage`` of them.",
    (PL,),
)
user_name(
    "while_",
    "*, init_values=None",
    ("A loop with a condition, in entries: ``for (n,) in pl.while_(init_values=(8,)):``, ``pl.cond(...)`` first."),
    (PL,),
)
user_name(
    "yield_",
    "*values",
    "The values for the next turn of a loop with ``init_values``, or of a branch; gives the values.",
    (PL,),
)
user_name(
    "cond",
    "condition",
    "The condition of a ``pl.while_`` loop; first statement of its body.",
    (PL,),
)
user_name(
    "static_assert",
    "condition, msg=''",
    "An error while compiling unless a condition on known numbers holds.",
    (PL,),
)
user_name(
    "static_print",
    "*args",
    "Print what expressions stand for while compiling, to the standard error output.",
    (PL,),
)
user_name(
    "at",
    (
        "level, role=None, *, optimizations=None, deps=None, no_dep_args=None, dumps=None, "
        "allow_early_resolve=False, name_hint='', windowize=False"
    ),
    "A scope of an entry whose body runs on a core: ``with pl.at(level=pl.Level.CORE_GROUP):``.",
    (PL,),
)
user_name(
    "const",
    "value, dtype",
    "A scalar of a certain dtype.",
    (PL,),
)
user_name(
    "func_attr",
    "attrs",
    "Attributes of a function, as its first statement: ``split``, ``split_aiv``, ``stationary``; change no number.",
    (PL,),
)
user_name(
    "cluster",
    "*, name_hint=''",
    "Launches that belong together: ``with pl.cluster() as tasks:``.",
    (PL,),
)
user_name(
    "spmd",
    (
        "core_num, *, sync_start=False, name_hint='', optimizations=None, deps=None, "
        "allow_early_resolve=False, predicate=None"
    ),
    "A scope that runs once for each of ``core_num`` blocks: ``for block in pl.spmd(4):`` or ``with pl.spmd(4):``.",
    (PL,),
)
user_name(
    "split_aiv",
    "n, *, mode",
    (
        "A part of a scope that both vector cores run: ``for core in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):``. "
        "UP_DOWN and LEFT_RIGHT: each has half of the rows or columns of the tiles; NONE: each has tiles of its own."
    ),
    (PL,),
)
user_name(
    "submit",
    "*args, **kwargs",
    "``result, tasks = pl.submit(kernel, *arguments, deps=[...])``: a call of a kernel whose tasks get a name.",
    (PL,),
)
user_name(
    "spmd_submit",
    "*args, **kwargs",
    "``pl.submit`` once for each block: ``result, tasks = pl.spmd_submit(kernel, *arguments, core_num=4)``.",
    (PL,),
)
user_name(
    "split",
    "mode, *, slot_num=None",
    "How vector cores share a scope; changes no number.",
    (PL,),
)
user_name(
    "cross_core_slot",
    "*, slot_num",
    "How far one kind of core may run ahead of the other; changes no number.",
    (PL,),
)
