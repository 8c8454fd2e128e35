"""The light repository that registration loads: `toolchain()` declarations and nothing else."""

def declaration(name, toolchain, toolchain_type, exec_compatible_with = [], target_compatible_with = [], target_settings = []):
    """One `toolchain()` of a hub.

    Args:
      name: string; the target's name.
      toolchain: string; label of the heavy target. A string, so that naming it fetches nothing.
      toolchain_type: string; label of the toolchain type.
      exec_compatible_with: list of strings; constraints of the machine that the tool runs on.
      target_compatible_with: list of strings; constraints of the machine that is built for.
      target_settings: list of strings; configurations in which it may be chosen.

    Returns:
      The declaration as text, for the attribute `declarations`.
    """
    return json.encode({
        "exec_compatible_with": exec_compatible_with,
        "name": name,
        "target_compatible_with": target_compatible_with,
        "target_settings": target_settings,
        "toolchain": toolchain,
        "toolchain_type": toolchain_type,
    })

def _toolchain_hub_impl(rctx):
    lines = ["exports_files([\"choice.bzl\", \"choice.json\"])\n"]
    for text in rctx.attr.declarations:
        lines.append("toolchain(")
        lines.extend(["    {} = {},".format(name, repr(value)) for name, value in sorted(json.decode(text).items())])
        lines.append(")\n")
    rctx.file("BUILD.bazel", "\n".join(lines))
    rctx.file("choice.json", rctx.attr.choice + "\n")
    rctx.file("choice.bzl", "\"\"\"How the tool set was chosen.\"\"\"\n\nKIND = {}\n".format(repr(json.decode(rctx.attr.choice)["kind"])))

toolchain_hub = repository_rule(
    implementation = _toolchain_hub_impl,
    attrs = {
        "choice": attr.string(
            mandatory = True,
            doc = "The choice (JSON): `kind`, `decided_by` and the fields of the tag.",
        ),
        "declarations": attr.string_list(
            doc = "What `declaration` returned for each toolchain.",
        ),
    },
    doc = "Declares toolchains without touching what implements them.",
)
