"""The provider of a sealed bundle."""

PyptoBundleInfo = provider(
    doc = "A sealed bundle: a directory that a process without any compiler imports and runs.",
    fields = {
        "bundle": "File: the bundle directory, with `bundle.json` in it.",
        "digest": "File: the bundle's digest as text, which a deployment can pin.",
        "execution_mode": "string: `sim` or `device`, the mode of everything in the bundle.",
        "kernels": "depset of PyptoKernelInfo: the specializations sealed in it.",
    },
)
