"""The rule that offers a GCC tree as a toolchain."""

load("//toolchains/gcc:info.bzl", "GccInfo")
load("//toolchains/private:tool_tree.bzl", "TOOL_TREE_ATTRS", "tool_tree_fields")

def _gcc_toolchain_impl(ctx):
    fields = tool_tree_fields(ctx)
    return [
        DefaultInfo(files = fields.files),
        platform_common.ToolchainInfo(
            gcc_info = GccInfo(evidence = fields.evidence, files = fields.files, version = fields.version),
        ),
    ]

gcc_toolchain = rule(
    implementation = _gcc_toolchain_impl,
    attrs = TOOL_TREE_ATTRS,
    doc = "A GCC for x86_64 Linux with its binutils, headers and libraries, for `toolchain(toolchain_type = \"@pypto//toolchains/gcc:toolchain_type\")`.",
    provides = [DefaultInfo, platform_common.ToolchainInfo],
)
