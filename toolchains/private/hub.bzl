"""The light repository that registration loads: `toolchain()` declarations and nothing else."""

_IS_SIM = Label("//rules:is_sim")

def _toolchain_hub_impl(rctx):
    rctx.file("BUILD.bazel", """\
toolchain(
    name = "toolchain",
    exec_compatible_with = {exec_compatible_with},
    target_settings = [{target_setting}],
    toolchain = {toolchain},
    toolchain_type = {toolchain_type},
)
""".format(
        exec_compatible_with = repr(rctx.attr.exec_compatible_with),
        # For the device nothing can be built yet, so nothing must be fetched before the rule says so.
        target_setting = repr(str(_IS_SIM)),
        toolchain = repr(rctx.attr.toolchain),
        toolchain_type = repr(rctx.attr.toolchain_type),
    ))

toolchain_hub = repository_rule(
    implementation = _toolchain_hub_impl,
    attrs = {
        "exec_compatible_with": attr.string_list(
            doc = "Constraints of the machine that the tool runs on.",
        ),
        "toolchain": attr.string(
            mandatory = True,
            doc = "Label of the heavy target. A string, so that naming it fetches nothing.",
        ),
        "toolchain_type": attr.string(
            mandatory = True,
            doc = "Label of the toolchain type.",
        ),
    },
    doc = "Declares a toolchain without touching what implements it.",
)
