"""All operations, a module for each family: operands, element types, result types, lowering, and what users call them.

`registry` is what they register in; `user_names` has the names of ``pl``, ``pl.tile`` and ``pl.tensor``.
"""
