"""The rule `pypto_library`."""

load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules/private:actions.bzl", "STEP_ATTRS", "check_sources")
load("//rules/private:messages.bzl", "shown_label")
load("//rules/private/providers:sources_info.bzl", "PyptoSourcesInfo")

def native_sources_of(deps):
    """The hand-written C++ that libraries bring along.

    Args:
      deps: list of Targets.

    Returns:
      A list of depsets of File.
    """
    return [dep[PyptoSourcesInfo].native_sources for dep in deps if PyptoSourcesInfo in dep]

def _import_path(ctx, folder):
    parts = [ctx.label.repo_name or ctx.workspace_name, ctx.label.package, folder]
    path = "/".join([part for part in parts if part and part != "."])
    if folder.startswith("/") or ".." in path.split("/"):
        fail("imports = ['{}'] of {} leads out of the package".format(folder, shown_label(ctx.label)))
    return path

def library_providers(ctx, own, native, source_attributes):
    """What a target with Python files provides.

    Args:
      ctx: context of a rule with `LIBRARY_ATTRS`.
      own: list of File; its Python files.
      native: list of File; its C++ files.
      source_attributes: list of strings; the attributes with sources, for coverage.

    Returns:
      A list of providers.
    """
    dependencies = [dep[PyInfo] for dep in ctx.attr.deps]
    sources = depset(own, transitive = [dep.transitive_sources for dep in dependencies])
    imports = depset(
        [_import_path(ctx, folder) for folder in ctx.attr.imports],
        transitive = [dep.imports for dep in dependencies],
    )
    checked = ctx.actions.declare_file(ctx.label.name + ".pypto/checked")
    check_sources(ctx, own = own, sources = sources, imports = imports, checked = checked)
    native_sources = depset(native, transitive = native_sources_of(ctx.attr.deps))
    runfiles = ctx.runfiles(own + native).merge_all([dep[DefaultInfo].default_runfiles for dep in ctx.attr.deps])
    return [
        DefaultInfo(files = depset(own), runfiles = runfiles),
        OutputGroupInfo(_validation = depset([checked])),
        PyInfo(imports = imports, transitive_sources = sources),
        PyptoSourcesInfo(direct_sources = depset(own), imports = imports, native_sources = native_sources, sources = sources),
        coverage_common.instrumented_files_info(ctx, dependency_attributes = ["deps"], source_attributes = source_attributes),
    ]

LIBRARY_ATTRS = STEP_ATTRS | {
    "deps": attr.label_list(
        providers = [PyInfo],
        doc = "Libraries (`pypto_library`, `pypto_extern_kernel` or `py_library`) whose modules are imported. `pypto` itself needs no mention.",
    ),
    "imports": attr.string_list(
        doc = "Folders of the package that modules are imported from, besides the root of the repository.",
    ),
}

def _pypto_library_impl(ctx):
    return library_providers(ctx, own = ctx.files.srcs, native = [], source_attributes = ["srcs"])

pypto_library = rule(
    implementation = _pypto_library_impl,
    attrs = LIBRARY_ATTRS | {
        "srcs": attr.label_list(
            mandatory = True,
            allow_files = [".py"],
            doc = "The Python files.",
        ),
    },
    doc = """Python files with kernels, parts of kernels or constants that several kernels share.

It may stand wherever a `py_library` may. Unlike that, it is checked when it is built (output group `_validation`): its
files must be Python that imports only `pypto`, the standard library and modules of `deps`, since a build offers nothing else.""",
    provides = [PyInfo, PyptoSourcesInfo],
)
