"""Rules that build PyPTO kernels.

`load("@pypto//rules:defs.bzl", "pypto_kernel")`
"""

load("//rules/private:pypto_bundle.bzl", _pypto_bundle = "pypto_bundle")
load("//rules/private:pypto_extern_kernel.bzl", _pypto_extern_kernel = "pypto_extern_kernel")
load("//rules/private:pypto_kernel.bzl", _pypto_kernel = "pypto_kernel")
load("//rules/private:pypto_kernel_test.bzl", _pypto_kernel_test = "pypto_kernel_test")
load("//rules/private:pypto_library.bzl", _pypto_library = "pypto_library")
load("//rules/private:requires_device.bzl", _requires_pypto_device = "requires_pypto_device")

pypto_bundle = _pypto_bundle
pypto_extern_kernel = _pypto_extern_kernel
pypto_kernel = _pypto_kernel
pypto_kernel_test = _pypto_kernel_test
pypto_library = _pypto_library
requires_pypto_device = _requires_pypto_device
