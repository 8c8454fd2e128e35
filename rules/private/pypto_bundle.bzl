"""The rule `pypto_bundle`, with its target `<name>.install`."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//rules/private:actions.bzl", "STEP_ATTRS", "seal", "verify")
load("//rules/private:identity_settings.bzl", "IDENTITY_ATTRS", "identity_settings")
load("//rules/private:install.bzl", "install_target")
load("//rules/private:messages.bzl", "shown_label")
load("//rules/private/providers:bundle_info.bzl", "PyptoBundleInfo")
load("//rules/private/providers:kernel_info.bzl", "PyptoKernelInfo")
load("//rules/private/providers:values.bzl", "BACKEND_TYPES")

_FLAG = str(Label("//rules:backend_type"))

def _backend_types_impl(settings, attr):
    if not attr.backend_types:
        return {"configured": {_FLAG: settings[_FLAG]}}
    return {backend_type: {_FLAG: backend_type} for backend_type in attr.backend_types}

_backend_types = transition(
    implementation = _backend_types_impl,
    inputs = [_FLAG],
    outputs = [_FLAG],
)

def _by_backend_type(ctx):
    """Kernels by backend type; a kernel that names its own is taken once, whatever it was configured for."""
    found = {}
    for configured, targets in ctx.split_attr.kernels.items():
        for target in targets:
            kernel = target[PyptoKernelInfo]
            if ctx.attr.backend_types and kernel.backend_type not in ctx.attr.backend_types:
                fail("{} is for {}, and {} is made for {} only".format(
                    shown_label(target.label),
                    kernel.backend_type,
                    shown_label(ctx.label),
                    ", ".join(ctx.attr.backend_types),
                ))
            if configured in ["configured", kernel.backend_type]:
                found.setdefault(kernel.backend_type, []).append((target.label, kernel))
    missing = [backend_type for backend_type in ctx.attr.backend_types if backend_type not in found]
    if missing:
        fail("{} has no kernel for {}: the kernels name other backend types themselves".format(
            shown_label(ctx.label),
            ", ".join(missing),
        ))
    return found

def _pypto_bundle_impl(ctx):
    settings = identity_settings(ctx)
    found = _by_backend_type(ctx)
    bundles, digests, verified, kernels = {}, {}, [], []
    for backend_type, listed in sorted(found.items()):
        first = listed[0]
        for label, kernel in listed:
            if kernel.tools != first[1].tools:
                fail("{} and {} are built with different tools, so one bundle cannot hold both".format(
                    shown_label(first[0]),
                    shown_label(label),
                ))
        name = ctx.label.name + ".bundle"
        if len(found) > 1:
            name += "/" + backend_type
        bundle = ctx.actions.declare_directory(name)
        digest = ctx.actions.declare_file("{}.digests/{}".format(ctx.label.name, backend_type))
        check = ctx.actions.declare_file("{}.pypto/{}.verified".format(ctx.label.name, backend_type))
        members = [kernel for _, kernel in listed]
        seal(ctx, members, members[0].descriptor, settings, bundle, digest)
        verify(ctx, bundle, check)
        bundles[backend_type] = bundle
        digests[backend_type] = digest
        verified.append(check)
        kernels.extend(members)
    return [
        DefaultInfo(files = depset(bundles.values()), runfiles = ctx.runfiles(bundles.values())),
        OutputGroupInfo(
            cpp = depset([kernel.assembled for kernel in kernels]),
            generated = depset([kernel.generated for kernel in kernels]),
            manifest = depset(digests.values() + [file for kernel in kernels for file in (kernel.request, kernel.descriptor)]),
            objects = depset([kernel.ready for kernel in kernels]),
            pto = depset(transitive = [target[OutputGroupInfo].pto for targets in ctx.split_attr.kernels.values() for target in targets]),
            verified = depset(verified),
        ),
        PyptoBundleInfo(
            bundles = bundles,
            digests = digests,
            execution_mode = ctx.attr._execution_mode[BuildSettingInfo].value,
            kernels = depset(kernels),
        ),
    ]

_pypto_bundle = rule(
    implementation = _pypto_bundle_impl,
    attrs = STEP_ATTRS | IDENTITY_ATTRS | {
        "backend_types": attr.string_list(
            doc = "The hardware families to build every kernel for that names none itself. Without it each kernel is taken as it is.",
        ),
        "kernels": attr.label_list(
            mandatory = True,
            allow_empty = False,
            cfg = _backend_types,
            providers = [PyptoKernelInfo],
            doc = "The `pypto_kernel` targets.",
        ),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
            doc = "Bazel wants it of every rule with a transition.",
        ),
        "_execution_mode": attr.label(
            default = Label("//rules:execution_mode"),
            providers = [BuildSettingInfo],
            doc = "Where the kernels will run.",
        ),
    },
    doc = "Seals many kernels into one directory.",
    provides = [PyptoBundleInfo],
)

def pypto_bundle(name, kernels, backend_types = [], **kwargs):
    """Seals many kernels into the directory `<name>.bundle`.

    ```starlark
    pypto_bundle(
        name = "attention",
        backend_types = ["Ascend910B", "Ascend950"],
        kernels = [":decode", ":prefill"],
    )
    ```

    A bundle is for one backend type. With kernels for one, `<name>.bundle` is that bundle; with several it holds one bundle
    for each, `<name>.bundle/Ascend910B` and so on. `<name>.digests/<backend type>` (output group `manifest`) holds the
    digest of each. `bazel run <name>.install -- --root DIR` imports them all into a live store.

    Output groups: `generated`, `cpp` and `objects` of all kernels, `manifest` with their records, `verified` (every byte of the
    bundles checked against their manifests).

    Args:
      name: string; the target's name.
      kernels: list of labels of `pypto_kernel` targets.
      backend_types: list of strings; the hardware families to build every kernel for that names none itself. Without
        it each kernel is taken as it is.
      **kwargs: attributes of every rule (`visibility`, `tags`, ...).
    """
    for backend_type in backend_types:
        if backend_type not in BACKEND_TYPES:
            fail("backend_types of {}: {} is not one of {}".format(name, repr(backend_type), ", ".join(BACKEND_TYPES)))
    if len(backend_types) != len({backend_type: None for backend_type in backend_types}):
        fail("backend_types of {} names a backend type twice".format(name))
    _pypto_bundle(name = name, kernels = kernels, backend_types = backend_types, **kwargs)
    install_target(name, kwargs)
