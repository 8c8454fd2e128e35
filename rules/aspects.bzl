"""Aspects that look into targets without touching their BUILD files.

```
bazel build //kernels:decode_a2a3 --aspects=@pypto//rules:aspects.bzl%pypto_ir --output_groups=pypto_ir
bazel build //... --aspects=@pypto//rules:aspects.bzl%pypto_lint --output_groups=pypto_lint
```
"""

load("//rules/private:ir_aspect.bzl", _pypto_ir = "pypto_ir")
load("//rules/private:lint_aspect.bzl", _pypto_lint = "pypto_lint")

pypto_ir = _pypto_ir
pypto_lint = _pypto_lint
