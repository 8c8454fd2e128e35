"""The steps that turn a kernel into artifacts; Bazel actions and JIT calls run the same functions.

Each step goes from directories to a directory: :mod:`pypto.build.generate`, :mod:`pypto.build.assemble`,
:mod:`pypto.build.compile_`, :mod:`pypto.build.seal`. ``python -m pypto.build STEP --help`` is the command-line form.
Nothing is imported here, so that each step loads only what it needs.
"""
