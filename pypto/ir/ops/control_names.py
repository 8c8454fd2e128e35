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
    "Attributes of a function.",
    (PL,),
    unsupported="not implemented yet",
)
user_name(
    "cluster",
    "*, name_hint=''",
    "A scope whose parts run side by side.",
    (PL,),
    unsupported="not implemented yet",
)
user_name(
    "spmd",
    (
        "core_num, *, sync_start=False, name_hint='', optimizations=None, deps=None, "
        "allow_early_resolve=False, predicate=None"
    ),
    "A scope that runs on several cores at once.",
    (PL,),
    unsupported="not implemented yet",
)
user_name(
    "split_aiv",
    "n, *, mode",
    "A scope that two vector cores share.",
    (PL,),
    unsupported="not implemented yet",
)
user_name(
    "submit",
    "*args, **kwargs",
    "Hand a function to the cores, with dependencies of its own.",
    (PL,),
    unsupported="not implemented yet",
)
user_name(
    "spmd_submit",
    "*args, **kwargs",
    "Hand a function to several cores at once.",
    (PL,),
    unsupported="not implemented yet",
)
user_name(
    "split",
    "mode, *, slot_num=None",
    "How a scope is shared by two vector cores.",
    (PL,),
    unsupported="not implemented yet",
)
user_name(
    "cross_core_slot",
    "*, slot_num",
    "Slots between the kinds of cores.",
    (PL,),
    unsupported="not implemented yet",
)
