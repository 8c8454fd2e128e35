"""From typed IR to what the tools compile: `.pto` text, kernel wrappers, orchestration C++, `kernel_config.json`.

:func:`pypto.codegen.generate.generate` makes all files of a program.
"""
