"""The rule that offers the PTO-ISA headers with the CPU simulator as a toolchain."""

load("//toolchains/private:tool_tree.bzl", "TOOL_TREE_ATTRS", "tool_tree_fields")
load("//toolchains/pto_isa:info.bzl", "PtoIsaInfo")

def _pto_isa_toolchain_impl(ctx):
    info = PtoIsaInfo(**tool_tree_fields(ctx))
    return [
        DefaultInfo(files = info.files),
        platform_common.ToolchainInfo(pto_isa_info = info),
    ]

pto_isa_toolchain = rule(
    implementation = _pto_isa_toolchain_impl,
    attrs = TOOL_TREE_ATTRS,
    doc = "The PTO-ISA headers with the CPU simulator, for `toolchain(toolchain_type = \"@pypto//toolchains/pto_isa:toolchain_type\")`.",
    provides = [DefaultInfo, platform_common.ToolchainInfo],
)
