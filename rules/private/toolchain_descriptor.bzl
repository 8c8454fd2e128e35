"""The toolchain descriptor of a configuration, which all its kernels share."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//rules/private:actions.bzl", "STEP_ATTRS", "describe")
load("//rules/private:identity_settings.bzl", "IDENTITY_ATTRS", "identity_settings")
load("//rules/private:tool_set.bzl", "TOOL_SET_TOOLCHAINS", "available_tools", "evidence_of")

ToolchainDescriptorInfo = provider(
    doc = "The descriptor of the tools that are chosen in a configuration.",
    fields = {
        "descriptor": "File: the descriptor (JSON); None where a tool is missing, which the kernel reports.",
        "tools": "tuple of File: the records of the tool sets that it describes.",
    },
)

def _toolchain_descriptor_impl(ctx):
    tools = available_tools(ctx, ctx.attr._execution_mode[BuildSettingInfo].value)
    if not tools:
        return [ToolchainDescriptorInfo(descriptor = None, tools = ())]
    descriptor = ctx.actions.declare_file("toolchain.json")
    describe(ctx, tools, identity_settings(ctx), descriptor)
    return [
        DefaultInfo(files = depset([descriptor])),
        ToolchainDescriptorInfo(descriptor = descriptor, tools = evidence_of(tools)),
    ]

toolchain_descriptor = rule(
    implementation = _toolchain_descriptor_impl,
    attrs = STEP_ATTRS | IDENTITY_ATTRS | {
        "_execution_mode": attr.label(
            default = Label("//rules:execution_mode"),
            providers = [BuildSettingInfo],
            doc = "Where kernels will run.",
        ),
    },
    doc = "Describes the tools once for all kernels of a configuration.",
    provides = [ToolchainDescriptorInfo],
    toolchains = TOOL_SET_TOOLCHAINS,
)

DESCRIPTOR_ATTRS = {
    "_toolchain_descriptor": attr.label(
        default = Label("//rules/private:toolchain_descriptor"),
        providers = [ToolchainDescriptorInfo],
        doc = "The descriptor of the tools.",
    ),
}

def descriptor_of(ctx, tools, settings):
    """The descriptor of a target's tools.

    Args:
      ctx: context of a rule with `DESCRIPTOR_ATTRS` and `STEP_ATTRS`.
      tools: dict of name to Info; what `select_tools` returns.
      settings: struct; the identity settings, see `identity_settings`.

    Returns:
      A File: the shared descriptor, or one of the target's own if its tools are others, such as those of another
      execution platform.
    """
    shared = ctx.attr._toolchain_descriptor[ToolchainDescriptorInfo]
    if shared.tools == evidence_of(tools):
        return shared.descriptor
    descriptor = ctx.actions.declare_file(ctx.label.name + ".pypto/toolchain.json")
    describe(ctx, tools, settings, descriptor)
    return descriptor
