"""The rule `pypto_kernel`."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules/private:actions.bzl", "STEP_ATTRS", "assemble", "compile_kernel", "describe", "generate", "seal")
load("//rules/private:module_name.bzl", "module_of")
load("//rules/private:tool_set.bzl", "TOOL_SET_TOOLCHAINS", "select_tools")
load("//rules/private/providers:bundle_info.bzl", "PyptoBundleInfo")
load("//rules/private/providers:kernel_info.bzl", "PyptoKernelInfo")
load("//toolchains:types.bzl", "GCC_TOOLCHAIN_TYPE", "PTOAS_TOOLCHAIN_TYPE")

def _pypto_kernel_impl(ctx):
    name = ctx.label.name
    module = module_of(ctx.file.src, ctx.attr.module)
    execution_mode = ctx.attr._execution_mode[BuildSettingInfo].value
    tools = select_tools(ctx, ctx.attr.backend_type, execution_mode)
    entry = ctx.attr.entry or module.name.rpartition(".")[2]
    sources = depset(
        [ctx.file.src],
        transitive = [dep[PyInfo].transitive_sources for dep in ctx.attr.deps],
    )

    request = ctx.actions.declare_file(name + ".pypto/request.json")
    descriptor = ctx.actions.declare_file(name + ".pypto/toolchain.json")
    generated = ctx.actions.declare_directory(name + ".pypto/generated")
    assembled = ctx.actions.declare_directory(name + ".pypto/assembled")
    ready = ctx.actions.declare_directory(name + ".pypto/ready")
    bundle = ctx.actions.declare_directory(name + ".bundle")
    digest = ctx.actions.declare_file(name + ".bundle.digest")

    generate(
        ctx,
        backend_type = ctx.attr.backend_type,
        entry = entry,
        execution_mode = execution_mode,
        generated = generated,
        import_roots = module.import_roots,
        imports = depset(transitive = [dep[PyInfo].imports for dep in ctx.attr.deps]),
        module = module.name,
        options = ctx.attr.options,
        request = request,
        sources = sources,
        tensors = ctx.attr.tensors,
    )
    describe(ctx, tools, descriptor)
    assemble(ctx, tools, generated, descriptor, assembled, toolchain = PTOAS_TOOLCHAIN_TYPE)
    compile_kernel(ctx, tools, generated, assembled, descriptor, ready, toolchain = GCC_TOOLCHAIN_TYPE)

    kernel = PyptoKernelInfo(
        backend_type = ctx.attr.backend_type,
        descriptor = descriptor,
        entry = entry,
        execution_mode = execution_mode,
        generated = generated,
        module = module.name,
        ready = ready,
        request = request,
    )
    seal(ctx, [kernel], descriptor, bundle, digest)
    return [
        DefaultInfo(
            files = depset([bundle]),
            runfiles = ctx.runfiles([bundle]),
        ),
        OutputGroupInfo(
            generated = depset([generated]),
            manifest = depset([digest, request, descriptor]),
            objects = depset([ready]),
        ),
        kernel,
        PyptoBundleInfo(
            bundle = bundle,
            digest = digest,
            execution_mode = execution_mode,
            kernels = depset([kernel]),
        ),
    ]

pypto_kernel = rule(
    implementation = _pypto_kernel_impl,
    attrs = STEP_ATTRS | {
        "backend_type": attr.string(
            mandatory = True,
            values = ["Ascend910B", "Ascend950"],
            doc = "The hardware family: `Ascend910B` (A2/A3) or `Ascend950` (A5).",
        ),
        "deps": attr.label_list(
            providers = [PyInfo],
            doc = "Python libraries that the kernel's module imports. `pypto` itself needs no mention.",
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
        "_execution_mode": attr.label(
            default = Label("//rules:execution_mode"),
            providers = [BuildSettingInfo],
            doc = "Where the kernel will run.",
        ),
    },
    doc = """Compiles a kernel and seals it into the bundle `<name>.bundle`.

```starlark
pypto_kernel(
    name = "decode_a2a3",
    src = "decode.py",
    backend_type = "Ascend910B",
)
```

A process without any compiler runs it: `pypto.import_bundle("bazel-bin/kernels/decode_a2a3.bundle").load("decode")`.
The flag `--@pypto//rules:execution_mode` says where it will run: `sim` (the simulator, default) or `device`.

Output groups: `generated` (what the compiler wrote, readable), `objects` (with the binaries), `manifest` (the
bundle's digest, the request record and the toolchain descriptor).""",
    provides = [PyptoKernelInfo, PyptoBundleInfo],
    toolchains = TOOL_SET_TOOLCHAINS,
)
