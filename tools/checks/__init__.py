"""`tools/test`: one locked Python environment, then the toolchain, the linters, the type checker and pytest."""
