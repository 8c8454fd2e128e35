"""How `tools/bazel` finds a Bazel, or sets one up.

`launch` chooses and starts it, `notes` remembers what was asked before, `modules` decides where Bazel
modules come from. The rest builds the private prefix: `prefix` is the procedure, `packages` fetches them,
`unpacked` and `java` make them run where they lie, `rcfiles` writes what Bazel reads.

Standard library only (and of this checkout `pypto.toolchain`, which needs no more). `launch` stands before every
build, so it imports the rest only when it is needed.
"""
