"""The rule that offers an Ascend toolkit as a toolchain."""

load("//toolchains/cann:info.bzl", "CannInfo")
load("//toolchains/private:tool_tree.bzl", "TOOL_TREE_ATTRS", "tool_tree_fields")

def _cann_toolchain_impl(ctx):
    info = CannInfo(**tool_tree_fields(ctx))
    return [
        DefaultInfo(files = info.files),
        platform_common.ToolchainInfo(cann_info = info),
    ]

cann_toolchain = rule(
    implementation = _cann_toolchain_impl,
    attrs = TOOL_TREE_ATTRS,
    doc = "An Ascend toolkit, for `toolchain(toolchain_type = \"@pypto//toolchains/cann:toolchain_type\")`.",
    provides = [DefaultInfo, platform_common.ToolchainInfo],
)
