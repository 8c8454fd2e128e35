"""The rule `pypto_kernel`, with its target `<name>.install`."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules/private:actions.bzl", "STEP_ATTRS", "assemble", "check_sources", "compile_kernel", "generate", "seal", "select_pto", "verify")
load("//rules/private:identity_settings.bzl", "IDENTITY_ATTRS", "identity_settings")
load("//rules/private:install.bzl", "install_target")
load("//rules/private:kernel_source.bzl", "kernel_source")
load("//rules/private:messages.bzl", "shown_label")
load("//rules/private:tool_set.bzl", "TOOL_SET_ATTRS", "TOOL_SET_TOOLCHAINS", "evidence_of", "select_tools")
load("//rules/private:toolchain_descriptor.bzl", "DESCRIPTOR_ATTRS", "descriptor_of")
load("//rules/private/providers:bundle_info.bzl", "PyptoBundleInfo")
load("//rules/private/providers:kernel_info.bzl", "PyptoKernelInfo")
load("//rules/private/providers:values.bzl", "BACKEND_TYPES")
load("//toolchains:types.bzl", "GCC_TOOLCHAIN_TYPE", "PTOAS_TOOLCHAIN_TYPE")

def _backend_type(ctx):
    chosen = ctx.attr.backend_type or ctx.attr._backend_type[BuildSettingInfo].value
    if not chosen:
        fail("{} names no backend_type, and nothing else does: give the attribute, list the target in a pypto_bundle with backend_types, or build with --{}={}".format(
            shown_label(ctx.label),
            shown_label(Label("//rules:backend_type")),
            BACKEND_TYPES[0],
        ))
    return chosen

# Compile options that are said elsewhere; the place that is not meant would win or lose in silence.
_NO_OPTIONS = {
    "backend_type": "the attribute backend_type",
    "execution_mode": "the flag --{}".format(shown_label(Label("//rules:execution_mode"))),
}

def _check_dicts(ctx):
    for name in ctx.attr.options:
        if name in _NO_OPTIONS:
            fail("options of {} name {}, which {} decides".format(shown_label(ctx.label), name, _NO_OPTIONS[name]))
    for attribute, given in [("options", ctx.attr.options), ("tensors", ctx.attr.tensors)]:
        for name, value in given.items():
            if not name or "=" in name or not value:
                fail("{} of {} hold {} = {}; names and values are not empty".format(attribute, shown_label(ctx.label), repr(name), repr(value)))

def _pypto_kernel_impl(ctx):
    name = ctx.label.name
    _check_dicts(ctx)
    backend_type = _backend_type(ctx)
    source = kernel_source(ctx.file.src, ctx.attr, backend_type, ctx.attr._execution_mode[BuildSettingInfo].value)
    settings = identity_settings(ctx)
    tools = select_tools(ctx, backend_type, source.execution_mode)

    request = ctx.actions.declare_file(name + ".pypto/request.json")
    descriptor = descriptor_of(ctx, tools, settings)
    generated = ctx.actions.declare_directory(name + ".pypto/generated")
    pto = ctx.actions.declare_directory(name + ".pypto/pto")
    assembled = ctx.actions.declare_directory(name + ".pypto/assembled")
    ready = ctx.actions.declare_directory(name + ".pypto/ready")
    bundle = ctx.actions.declare_directory(name + ".bundle")
    digest = ctx.actions.declare_file(name + ".bundle.digest")
    verified = ctx.actions.declare_file(name + ".pypto/verified")
    checked = ctx.actions.declare_file(name + ".pypto/checked")

    generate(ctx, source, generated, request)
    select_pto(ctx, generated, pto)
    assemble(ctx, tools, generated, descriptor, assembled, toolchain = PTOAS_TOOLCHAIN_TYPE)
    compile_kernel(ctx, tools, generated, assembled, descriptor, ready, toolchain = GCC_TOOLCHAIN_TYPE)

    kernel = PyptoKernelInfo(
        assembled = assembled,
        backend_type = backend_type,
        descriptor = descriptor,
        entry = source.entry,
        execution_mode = source.execution_mode,
        generated = generated,
        module = source.module,
        ready = ready,
        request = request,
        tools = evidence_of(tools),
    )
    seal(ctx, [kernel], descriptor, settings, bundle, digest)
    verify(ctx, bundle, verified)
    check_sources(
        ctx,
        checked = checked,
        import_roots = source.import_roots,
        imports = source.imports,
        own = [ctx.file.src],
        sources = source.sources,
    )
    return [
        DefaultInfo(
            files = depset([bundle]),
            runfiles = ctx.runfiles([bundle]),
        ),
        OutputGroupInfo(
            cpp = depset([assembled]),
            generated = depset([generated]),
            manifest = depset([digest, request, descriptor]),
            objects = depset([ready]),
            pto = depset([pto]),
            verified = depset([verified]),
            # Nothing that needs the tools: validations run with every output group, also with `generated`.
            _validation = depset([checked]),
        ),
        kernel,
        PyptoBundleInfo(
            bundles = {backend_type: bundle},
            digests = {backend_type: digest},
            execution_mode = source.execution_mode,
            kernels = depset([kernel]),
        ),
        coverage_common.instrumented_files_info(ctx, dependency_attributes = ["deps"], source_attributes = ["src"]),
    ]

_pypto_kernel = rule(
    implementation = _pypto_kernel_impl,
    attrs = STEP_ATTRS | DESCRIPTOR_ATTRS | IDENTITY_ATTRS | TOOL_SET_ATTRS | {
        "backend_type": attr.string(
            values = [""] + BACKEND_TYPES,
            doc = "The hardware family: `Ascend910B` (A2/A3) or `Ascend950` (A5). Without it the flag `--@pypto//rules:backend_type` " +
                  "decides, which `pypto_bundle` sets.",
        ),
        "deps": attr.label_list(
            providers = [PyInfo],
            doc = "Libraries (`pypto_library`, `pypto_extern_kernel` or `py_library`) that the kernel's module imports. `pypto` itself needs no mention.",
        ),
        "entry": attr.string(
            doc = "The name of the `@pl.jit` function. Default: the last part of the module's name.",
        ),
        "module": attr.string(
            doc = "The dotted name to import `src` as. Default: its path in the repository, " +
                  "so `kernels/decode.py` is `kernels.decode`.",
        ),
        "options": attr.string_dict(
            doc = "Compile options by name, as in `f.compile(...)`.",
        ),
        "src": attr.label(
            mandatory = True,
            allow_single_file = [".py"],
            doc = "The Python file that holds the entry.",
        ),
        "tensors": attr.string_dict(
            doc = "Data type and shape of tensor parameters whose annotation leaves them open, " +
                  "by parameter: `{\"x\": \"FP16[128,64]\"}`.",
        ),
        "_backend_type": attr.label(
            default = Label("//rules:backend_type"),
            providers = [BuildSettingInfo],
            doc = "The hardware family of kernels that name none.",
        ),
        "_execution_mode": attr.label(
            default = Label("//rules:execution_mode"),
            providers = [BuildSettingInfo],
            doc = "Where the kernel will run.",
        ),
    },
    doc = "Compiles a kernel and seals it into a bundle.",
    provides = [PyptoKernelInfo, PyptoBundleInfo],
    toolchains = TOOL_SET_TOOLCHAINS,
)

def pypto_kernel(name, src, **kwargs):
    """Compiles a kernel and seals it into the bundle `<name>.bundle`.

    ```starlark
    pypto_kernel(
        name = "decode_a2a3",
        src = "decode.py",
        backend_type = "Ascend910B",
    )
    ```

    A process without any compiler runs it: `pypto.import_bundle("bazel-bin/kernels/decode_a2a3.bundle").load("decode")`.
    The flag `--@pypto//rules:execution_mode` says where it will run: `sim` (the simulator, default) or `device`.
    `bazel run <name>.install -- --root DIR` imports the bundle into a live store.

    Output groups: `generated` (what the compiler wrote, readable), `pto` (the assembler's input), `cpp` (its output),
    `objects` (with the binaries), `manifest` (the bundle's digest, the request record and the toolchain descriptor),
    `verified` (every byte of the bundle checked against its manifests), `_validation` (the imports of `src`, with every build).

    Args:
      name: string; the target's name.
      src: label; the Python file that holds the entry.
      **kwargs: the attributes below, and those of every rule (`visibility`, `tags`, ...).

        `backend_type`: the hardware family, `Ascend910B` (A2/A3) or `Ascend950` (A5); without it the flag
        `--@pypto//rules:backend_type` decides, which `pypto_bundle` sets.
        `entry`: the name of the `@pl.jit` function; default: the last part of the module's name.
        `module`: the dotted name to import `src` as; default: its path in the repository, so `kernels/decode.py` is
        `kernels.decode`.
        `tensors`: data type and shape of tensor parameters whose annotation leaves them open: `{"x": "FP16[128,64]"}`.
        `options`: compile options by name, as in `f.compile(...)`.
        `deps`: libraries (`pypto_library`, `pypto_extern_kernel` or `py_library`) that the module imports; `pypto` itself needs no mention.
    """
    _pypto_kernel(name = name, src = src, **kwargs)
    install_target(name, kwargs)
