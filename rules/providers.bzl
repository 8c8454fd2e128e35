"""What the rules of `defs.bzl` tell the rules that depend on them."""

load("//rules/private/providers:bundle_info.bzl", _PyptoBundleInfo = "PyptoBundleInfo")
load("//rules/private/providers:kernel_info.bzl", _PyptoKernelInfo = "PyptoKernelInfo")
load("//rules/private/providers:sources_info.bzl", _PyptoSourcesInfo = "PyptoSourcesInfo")

PyptoBundleInfo = _PyptoBundleInfo
PyptoKernelInfo = _PyptoKernelInfo
PyptoSourcesInfo = _PyptoSourcesInfo
