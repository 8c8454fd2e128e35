"""Choosing the tools of a target, with an error that says what to do when one is missing."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//rules/private:messages.bzl", "four_part_message", "shown_label")
load("//toolchains:types.bzl", "CANN_TOOLCHAIN_TYPE", "GCC_AARCH64_TOOLCHAIN_TYPE", "GCC_TOOLCHAIN_TYPE", "PTOAS_TOOLCHAIN_TYPE", "PTO_ISA_TOOLCHAIN_TYPE")
load("//toolchains/private:compatibility.bzl", "incompatibility")

# All optional: Bazel's own error for a missing mandatory toolchain names neither the reason nor the remedy.
TOOL_SET_TOOLCHAINS = [
    config_common.toolchain_type(CANN_TOOLCHAIN_TYPE, mandatory = False),
    config_common.toolchain_type(GCC_AARCH64_TOOLCHAIN_TYPE, mandatory = False),
    config_common.toolchain_type(GCC_TOOLCHAIN_TYPE, mandatory = False),
    config_common.toolchain_type(PTOAS_TOOLCHAIN_TYPE, mandatory = False),
    config_common.toolchain_type(PTO_ISA_TOOLCHAIN_TYPE, mandatory = False),
]

TOOL_SET_ATTRS = {
    "_allow_untested_versions": attr.label(
        default = Label("//toolchains:allow_untested_versions"),
        providers = [BuildSettingInfo],
        doc = "Whether tools may be used together that the table of tested versions does not list.",
    ),
}

def select_tools(ctx, backend_type, execution_mode):
    """The tools for one target, or an error that says which is missing and how to get it.

    Args:
      ctx: context of a rule with `TOOL_SET_TOOLCHAINS` and `TOOL_SET_ATTRS`.
      backend_type: string; the hardware family.
      execution_mode: string; `sim` or `device`.

    Returns:
      A dict of the sets' names in a toolchain descriptor to their Info: `gcc`, `isa`, `ptoas`, and for a device `cann` and
      (where there is one) `gcc_aarch64`.
    """
    if execution_mode == "device":
        flag = "--" + shown_label(Label("//rules:execution_mode"))
        _require(
            ctx,
            CANN_TOOLCHAIN_TYPE,
            needed = "CANN (the compiler ccec and ld.lld) to compile {} kernels for the device, ".format(backend_type) +
                     "since the flag {} is device".format(flag),
            found = "none; CANN is proprietary, so pypto cannot download it: MODULE.bazel must say where it is",
            paste = [
                "cann = use_extension(\"@pypto//toolchains/extensions:cann.bzl\", \"cann\")   # in MODULE.bazel",
                "cann.local(path = \"/usr/local/Ascend/ascend-toolkit/latest\")",
                "or: bazel build {}=sim {}   # builds the same kernel for the simulator".format(flag, shown_label(ctx.label)),
            ],
        )
    _downloaded(ctx, "gcc", GCC_TOOLCHAIN_TYPE, "a C++ compiler for the orchestration and for kernels in sim mode")
    _downloaded(ctx, "pto_isa", PTO_ISA_TOOLCHAIN_TYPE, "the PTO-ISA headers that kernels are compiled against")
    _downloaded(ctx, "ptoas", PTOAS_TOOLCHAIN_TYPE, "the assembler that turns .pto into C++")
    tools = available_tools(ctx, execution_mode)
    _check_versions(ctx, tools)
    return tools

def available_tools(ctx, execution_mode):
    """The same tools without an error: where one is missing, the result is empty.

    Args:
      ctx: context of a rule with `TOOL_SET_TOOLCHAINS`.
      execution_mode: string; `sim` or `device`.

    Returns:
      A dict as that of `select_tools`, or an empty one.
    """
    device = execution_mode == "device"
    types = [GCC_TOOLCHAIN_TYPE, PTOAS_TOOLCHAIN_TYPE, PTO_ISA_TOOLCHAIN_TYPE] + ([CANN_TOOLCHAIN_TYPE] if device else [])
    if [1 for toolchain_type in types if not ctx.toolchains[toolchain_type]]:
        return {}
    tools = {"cann": ctx.toolchains[CANN_TOOLCHAIN_TYPE].cann_info} if device else {}
    tools["gcc"] = ctx.toolchains[GCC_TOOLCHAIN_TYPE].gcc_info
    if device and ctx.toolchains[GCC_AARCH64_TOOLCHAIN_TYPE]:
        tools["gcc_aarch64"] = ctx.toolchains[GCC_AARCH64_TOOLCHAIN_TYPE].gcc_info
    tools["isa"] = ctx.toolchains[PTO_ISA_TOOLCHAIN_TYPE].pto_isa_info
    tools["ptoas"] = ctx.toolchains[PTOAS_TOOLCHAIN_TYPE].ptoas_info
    return tools

def evidence_of(tools):
    """The records of tools, in the order of their names.

    Args:
      tools: dict of name to Info.

    Returns:
      A tuple of Files.
    """
    return tuple([tool.evidence for _, tool in sorted(tools.items())])

def _check_versions(ctx, tools):
    problem = incompatibility(gcc = tools["gcc"].version, isa = tools["isa"].version, ptoas = tools["ptoas"].version)
    if not problem or ctx.attr._allow_untested_versions[BuildSettingInfo].value:
        return
    flag = "--" + shown_label(Label("//toolchains:allow_untested_versions"))
    fail(four_part_message(
        problem = "{} cannot be built.".format(shown_label(ctx.label)),
        needed = "tools that were tested together",
        looked_for = ["the nearest row of the table in docs/toolchains.md: {}".format(problem.row)],
        found = problem.found,
        paste = [
            "use the versions of that row: the tags download, local and wrap in MODULE.bazel choose them",
            "or: bazel build {} ...   # if you have tested yours".format(flag),
        ],
    ))

def _downloaded(ctx, name, toolchain_type, purpose):
    _require(
        ctx,
        toolchain_type,
        needed = purpose,
        found = "none that runs on this kind of machine; what pypto downloads ({}) runs on x86_64 Linux".format(name),
        paste = [
            "build --extra_execution_platforms={}".format(shown_label(Label("//toolchains:linux_x86_64"))) +
            "   # in .bazelrc, where actions are executed remotely on such machines",
        ],
    )

def _require(ctx, toolchain_type, needed, found, paste):
    if not ctx.toolchains[toolchain_type]:
        fail(four_part_message(
            problem = "{} cannot be built.".format(shown_label(ctx.label)),
            needed = needed,
            looked_for = ["a registered toolchain of the type {}".format(shown_label(toolchain_type))],
            found = found,
            paste = paste + ["bazel run {}   # explains what is set up".format(shown_label(Label("//toolchains:doctor")))],
        ))
