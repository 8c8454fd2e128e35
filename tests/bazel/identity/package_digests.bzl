"""A rule that writes the content digests of the pypto package as an action sees it."""

load("//rules/private:action_python.bzl", "ActionPythonInfo")
load("//rules/private:actions.bzl", "STEP_ATTRS")

def _package_digests_impl(ctx):
    python = ctx.attr._python[ActionPythonInfo]
    output = ctx.actions.declare_file(ctx.label.name + ".json")
    arguments = ctx.actions.args()
    arguments.add_all(["-I", "-S", "-B"])
    arguments.add(ctx.file._program)
    arguments.add(output)
    ctx.actions.run(
        executable = python.interpreter,
        arguments = [arguments],
        env = {"PATH": "/usr/bin:/bin:/usr/local/bin"},
        inputs = depset(
            [ctx.file._program],
            transitive = [python.files, ctx.attr._pypto[DefaultInfo].default_runfiles.files],
        ),
        mnemonic = "PyptoPackageDigests",
        outputs = [output],
        toolchain = None,
    )
    return [DefaultInfo(files = depset([output]))]

package_digests = rule(
    implementation = _package_digests_impl,
    attrs = STEP_ATTRS | {
        "_program": attr.label(
            default = Label("//tests/bazel/identity:package_digests.py"),
            allow_single_file = True,
            doc = "The program that computes them.",
        ),
    },
    doc = "Writes `<name>.json`: file lists and fingerprints of the components `pypto` and `runtime`.",
)
