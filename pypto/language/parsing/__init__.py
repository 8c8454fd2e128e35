"""From a kernel's syntax tree to IR: `program` parses an entry and all it calls.

`frame` holds the names while a function is parsed; `statements`, `expressions`, `loops` and `tasks` read what stands
there, `lanes` what both vector cores of a block share, `known_values` what is known while compiling; `calls` finds the
handler of each name that a kernel calls, in the modules ``*_calls``, or where whole tensors are divided in ``array_*``.
"""
