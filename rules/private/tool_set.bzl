"""Choosing the tools of a target, with an error that says what to do when one is missing."""

load("//rules/private:messages.bzl", "four_part_message", "shown_label")
load(
    "//toolchains:types.bzl",
    "CANN_TOOLCHAIN_TYPE",
    "GCC_TOOLCHAIN_TYPE",
    "PTOAS_TOOLCHAIN_TYPE",
    "PTO_ISA_TOOLCHAIN_TYPE",
)

# All optional: Bazel's own error for a missing mandatory toolchain names neither the reason nor the remedy.
TOOL_SET_TOOLCHAINS = [
    config_common.toolchain_type(CANN_TOOLCHAIN_TYPE, mandatory = False),
    config_common.toolchain_type(GCC_TOOLCHAIN_TYPE, mandatory = False),
    config_common.toolchain_type(PTOAS_TOOLCHAIN_TYPE, mandatory = False),
    config_common.toolchain_type(PTO_ISA_TOOLCHAIN_TYPE, mandatory = False),
]

def select_tools(ctx, backend_type, execution_mode):
    """The tools for one target, or an error that says which is missing and how to get it.

    Args:
      ctx: context of a rule with `TOOL_SET_TOOLCHAINS`.
      backend_type: string; the hardware family.
      execution_mode: string; `sim` or `device`.

    Returns:
      A struct of `gcc` (GccInfo), `isa` (PtoIsaInfo) and `ptoas` (PtoasInfo).
    """
    if execution_mode == "device":
        flag = "--" + shown_label(Label("//rules:execution_mode"))
        _require(
            ctx,
            CANN_TOOLCHAIN_TYPE,
            needed = "CANN (the compiler ccec and ld.lld) to compile {} kernels for the device, ".format(backend_type) +
                     "since the flag {} is device".format(flag),
            found = "none; CANN is proprietary, so pypto cannot download it and registers no toolchain for it",
            paste = ["bazel build {}=sim {}   # builds the same kernel for the simulator".format(flag, shown_label(ctx.label))],
        )
    return struct(
        gcc = _downloaded(ctx, "gcc", GCC_TOOLCHAIN_TYPE, "a C++ compiler for the orchestration and for kernels in sim mode").gcc_info,
        isa = _downloaded(ctx, "pto_isa", PTO_ISA_TOOLCHAIN_TYPE, "the PTO-ISA headers that kernels are compiled against").pto_isa_info,
        ptoas = _downloaded(ctx, "ptoas", PTOAS_TOOLCHAIN_TYPE, "the assembler that turns .pto into C++").ptoas_info,
    )

def _downloaded(ctx, name, toolchain_type, purpose):
    return _require(
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
    toolchain = ctx.toolchains[toolchain_type]
    if not toolchain:
        fail(four_part_message(
            problem = "{} cannot be built.".format(shown_label(ctx.label)),
            needed = needed,
            looked_for = ["a registered toolchain of the type {}".format(shown_label(toolchain_type))],
            found = found,
            paste = paste,
        ))
    return toolchain
