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

def _lines(declarations):
    lines = []
    for text in declarations:
        lines.append("toolchain(")
        lines.extend(["    {} = {},".format(name, repr(value)) for name, value in sorted(json.decode(text).items())])
        lines.append(")\n")
    return lines

def _toolchain_hub_impl(rctx):
    exported = ["exports_files([\"choice.bzl\", \"choice.json\"])\n"]
    rctx.file("BUILD.bazel", "\n".join(exported + _lines(rctx.attr.declarations)))
    rctx.file("cc/BUILD.bazel", "\n".join(_lines(rctx.attr.cc_declarations)))
    rctx.file("choice.json", rctx.attr.choice + "\n")
    rctx.file("choice.bzl", "\"\"\"How the tool set was chosen.\"\"\"\n\nKIND = {}\n".format(repr(json.decode(rctx.attr.choice)["kind"])))

toolchain_hub = repository_rule(
    implementation = _toolchain_hub_impl,
    attrs = {
        "cc_declarations": attr.string_list(
            doc = "Toolchains of the package `cc`, which a project registers only if it wants them for its own C++.",
        ),
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
