"""The rule that offers a GCC with its binutils, headers and libraries as a toolchain."""

load("//toolchains/gcc:info.bzl", "GccInfo")
load("//toolchains/private:tool_tree.bzl", "TOOL_TREE_ATTRS", "tool_tree_fields")

def _gcc_toolchain_impl(ctx):
    info = GccInfo(**tool_tree_fields(ctx))
    return [
        DefaultInfo(files = info.files),
        platform_common.ToolchainInfo(gcc_info = info),
    ]

gcc_toolchain = rule(
    implementation = _gcc_toolchain_impl,
    attrs = TOOL_TREE_ATTRS,
    doc = "A GCC with its binutils, headers and libraries, for `toolchain(toolchain_type = \"@pypto//toolchains/gcc:toolchain_type\")`.",
    provides = [DefaultInfo, platform_common.ToolchainInfo],
)
