"""What the rules of `defs.bzl` tell the rules that depend on them."""

load("//rules/private/providers:bundle_info.bzl", _PyptoBundleInfo = "PyptoBundleInfo")
load("//rules/private/providers:kernel_info.bzl", _PyptoKernelInfo = "PyptoKernelInfo")

PyptoBundleInfo = _PyptoBundleInfo
PyptoKernelInfo = _PyptoKernelInfo
