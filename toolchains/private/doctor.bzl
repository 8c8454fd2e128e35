"""The rule behind `//toolchains:doctor`."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//rules/private:python_program.bzl", "PROGRAM_ATTRS", "python_program", "runfiles_path")

def _pypto_doctor_impl(ctx):
    plan = ctx.actions.declare_file(ctx.label.name + ".json")
    x86_64 = ctx.target_platform_has_constraint(ctx.attr._x86_64[platform_common.ConstraintValueInfo])
    linux = ctx.target_platform_has_constraint(ctx.attr._linux[platform_common.ConstraintValueInfo])
    ctx.actions.write(plan, json.encode({
        "choices": [runfiles_path(ctx, file) for file in ctx.files._choices],
        "execution_mode": ctx.attr._execution_mode[BuildSettingInfo].value,
        "linux_x86_64": x86_64 and linux,
        "probe": runfiles_path(ctx, ctx.file._probe),
    }))
    return [python_program(ctx, ctx.file._program, [plan], [plan, ctx.file._probe] + ctx.files._choices)]

pypto_doctor = rule(
    implementation = _pypto_doctor_impl,
    attrs = PROGRAM_ATTRS | {
        "_choices": attr.label_list(
            allow_files = True,
            default = [
                Label("@cann_toolchains//:choice.json"),
                Label("@gcc_toolchains//:choice.json"),
                Label("@pto_isa_toolchains//:choice.json"),
                Label("@ptoas_toolchains//:choice.json"),
            ],
            doc = "What was decided about each tool set; loading it fetches no tools.",
        ),
        "_execution_mode": attr.label(
            default = Label("//rules:execution_mode"),
            providers = [BuildSettingInfo],
            doc = "Where kernels would run.",
        ),
        "_linux": attr.label(
            default = "@platforms//os:linux",
            doc = "What downloaded tools run on.",
        ),
        "_probe": attr.label(
            allow_single_file = True,
            default = Label("//toolchains/probe:probe.py"),
            doc = "Looks at local installations.",
        ),
        "_program": attr.label(
            allow_single_file = True,
            default = Label("//toolchains/private:doctor.py"),
            doc = "The program that explains.",
        ),
        "_x86_64": attr.label(
            default = "@platforms//cpu:x86_64",
            doc = "What downloaded tools run on.",
        ),
    },
    doc = "`bazel run` on it explains where each tool set comes from, what resolves, what does not, and why. Nothing is fetched.",
    executable = True,
)
