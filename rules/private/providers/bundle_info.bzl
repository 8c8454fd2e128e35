"""The provider of sealed bundles."""

load("//rules/private/providers:values.bzl", "EXECUTION_MODES", "check_fields")

def _init(*, bundles, digests, execution_mode, kernels):
    fields = {"bundles": bundles, "digests": digests, "execution_mode": execution_mode, "kernels": kernels}
    check_fields(
        "PyptoBundleInfo",
        fields,
        {"bundles": "dict", "digests": "dict", "execution_mode": EXECUTION_MODES, "kernels": "depset"},
    )
    if not bundles or sorted(bundles) != sorted(digests):
        fail("PyptoBundleInfo: bundles and digests have the same backend types as keys, at least one")
    return fields

PyptoBundleInfo, _new = provider(
    doc = "Sealed bundles, one for each backend type: directories that a process without any compiler imports and runs.",
    fields = {
        "bundles": "dict of string to File: by backend type, the bundle directory, with `bundle.json` in it.",
        "digests": "dict of string to File: by backend type, the bundle's digest as text, which a deployment can pin.",
        "execution_mode": "string: `sim` or `device`, the mode of everything in the bundles.",
        "kernels": "depset of PyptoKernelInfo: the specializations sealed in them.",
    },
    init = _init,
)
