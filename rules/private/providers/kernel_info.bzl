"""The provider of one compiled specialization."""

PyptoKernelInfo = provider(
    doc = "One kernel, compiled for one backend type and one execution mode. A bundle is sealed from these files.",
    fields = {
        "backend_type": "string: the hardware family, such as `Ascend910B`.",
        "descriptor": "File: the toolchain descriptor (JSON) that the binaries were built with.",
        "entry": "string: the name of the `@pl.jit` function.",
        "execution_mode": "string: `sim` or `device`.",
        "generated": "File: directory in state GENERATED (`.pto`, wrappers, orchestration, `kernel_config.json`).",
        "module": "string: the dotted name of the module that holds the entry.",
        "ready": "File: directory in state READY (GENERATED with binaries and `binary_manifest.json`).",
        "request": "File: the request record (JSON): digests of source and specialization.",
    },
)
