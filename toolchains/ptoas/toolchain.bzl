"""The rule that offers the assembler ptoas with its libraries as a toolchain."""

load("//toolchains/private:tool_tree.bzl", "TOOL_TREE_ATTRS", "tool_tree_fields")
load("//toolchains/ptoas:info.bzl", "PtoasInfo")

def _ptoas_toolchain_impl(ctx):
    info = PtoasInfo(**tool_tree_fields(ctx))
    return [
        DefaultInfo(files = info.files),
        platform_common.ToolchainInfo(ptoas_info = info),
    ]

ptoas_toolchain = rule(
    implementation = _ptoas_toolchain_impl,
    attrs = TOOL_TREE_ATTRS,
    doc = "The assembler ptoas with its libraries, for `toolchain(toolchain_type = \"@pypto//toolchains/ptoas:toolchain_type\")`.",
    provides = [DefaultInfo, platform_common.ToolchainInfo],
)
