"""The aspect `pypto_lint`."""

load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules/private:actions.bzl", "STEP_ATTRS", "check_sources")

def _pypto_lint_impl(target, ctx):
    attributes = ctx.rule.attr
    below = [
        dep[OutputGroupInfo].pypto_lint
        for name in ["deps", "kernels"]
        for dep in getattr(attributes, name, [])
        if OutputGroupInfo in dep and hasattr(dep[OutputGroupInfo], "pypto_lint")
    ]
    own = [file for file in getattr(ctx.rule.files, "srcs", []) if file.extension == "py"]
    if PyInfo not in target or not own:
        return [OutputGroupInfo(pypto_lint = depset(transitive = below))]
    checked = ctx.actions.declare_file(target.label.name + ".pypto_lint")
    check_sources(ctx, own = own, sources = target[PyInfo].transitive_sources, imports = target[PyInfo].imports, checked = checked)
    return [OutputGroupInfo(pypto_lint = depset([checked], transitive = below))]

pypto_lint = aspect(
    implementation = _pypto_lint_impl,
    attr_aspects = ["deps", "kernels"],
    attrs = STEP_ATTRS,
    doc = """Output group `pypto_lint`: every Python library that kernels depend on holds only what a build offers.

It is the check of `pypto_library`, for those who keep their sources in `py_library` targets.""",
)
