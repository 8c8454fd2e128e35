"""`<name>.install`: imports a bundle into a live store."""

load("//rules/private:python_program.bzl", "PROGRAM_ATTRS", "python_program")
load("//rules/private/providers:bundle_info.bzl", "PyptoBundleInfo")

def _pypto_install_impl(ctx):
    bundles = [bundle for _, bundle in sorted(ctx.attr.bundle[PyptoBundleInfo].bundles.items())]
    return [python_program(ctx, ctx.file._install, bundles + ["--"], bundles)]

pypto_install = rule(
    implementation = _pypto_install_impl,
    attrs = PROGRAM_ATTRS | {
        "bundle": attr.label(
            mandatory = True,
            providers = [PyptoBundleInfo],
            doc = "The bundle to import.",
        ),
        "_install": attr.label(
            default = Label("//rules/private:install.py"),
            allow_single_file = True,
            doc = "The program that imports it.",
        ),
    },
    doc = "`bazel run` on it imports a bundle into the store that `--root DIR` names (default: that of JIT calls).",
    executable = True,
)

_FORWARDED = ["compatible_with", "exec_compatible_with", "features", "restricted_to", "tags", "target_compatible_with", "testonly", "visibility"]

def install_target(name, attributes):
    """Declares `<name>.install` for the bundle `<name>`.

    Args:
      name: string; the bundle's target.
      attributes: dict; the attributes that its macro was given.
    """
    forwarded = {key: attributes[key] for key in _FORWARDED if key in attributes}

    # Patterns such as `//...` build the bundle itself; the program beside it is made when it is run.
    forwarded["tags"] = [tag for tag in forwarded.get("tags") or [] if tag != "manual"] + ["manual"]
    pypto_install(name = name + ".install", bundle = name, **forwarded)
