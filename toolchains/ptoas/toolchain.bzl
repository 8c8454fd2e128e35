"""The rule that offers a ptoas tree as a toolchain."""

load("//toolchains/private:tool_tree.bzl", "TOOL_TREE_ATTRS", "tool_tree_fields")
load("//toolchains/ptoas:info.bzl", "PtoasInfo")

def _ptoas_toolchain_impl(ctx):
    fields = tool_tree_fields(ctx)
    return [
        DefaultInfo(files = fields.files),
        platform_common.ToolchainInfo(
            ptoas_info = PtoasInfo(evidence = fields.evidence, files = fields.files, version = fields.version),
        ),
    ]

ptoas_toolchain = rule(
    implementation = _ptoas_toolchain_impl,
    attrs = TOOL_TREE_ATTRS,
    doc = "The assembler ptoas with its libraries, for `toolchain(toolchain_type = \"@pypto//toolchains/ptoas:toolchain_type\")`.",
    provides = [DefaultInfo, platform_common.ToolchainInfo],
)
