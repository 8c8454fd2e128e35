"""Rules that build PyPTO kernels.

`load("@pypto//rules:defs.bzl", "pypto_kernel")`
"""

load("//rules/private:pypto_kernel.bzl", _pypto_kernel = "pypto_kernel")

pypto_kernel = _pypto_kernel
