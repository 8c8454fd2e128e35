"""The provider of one compiled specialization."""

load("//rules/private/providers:values.bzl", "BACKEND_TYPES", "EXECUTION_MODES", "check_fields")

_TYPES = {
    "assembled": "File",
    "backend_type": BACKEND_TYPES,
    "descriptor": "File",
    "entry": "string",
    "execution_mode": EXECUTION_MODES,
    "generated": "File",
    "module": "string",
    "ready": "File",
    "request": "File",
    "tools": "tuple",
}

def _init(**fields):
    missing = [name for name in _TYPES if name not in fields]
    unknown = [name for name in fields if name not in _TYPES]
    if missing or unknown:
        fail("PyptoKernelInfo: {} {}".format("lacks" if missing else "has no field", ", ".join(missing or unknown)))
    check_fields("PyptoKernelInfo", fields, _TYPES)
    return fields

PyptoKernelInfo, _new = provider(
    doc = "One kernel, compiled for one backend type and one execution mode. A bundle is sealed from these files.",
    fields = {
        "assembled": "File: directory with the C++ of each kernel as ptoas wrote it, repaired and normalised.",
        "backend_type": "string: the hardware family, such as `Ascend910B`.",
        "descriptor": "File: the toolchain descriptor (JSON) that the binaries were built with.",
        "entry": "string: the name of the `@pl.jit` function.",
        "execution_mode": "string: `sim` or `device`.",
        "generated": "File: directory in state GENERATED (`.pto`, wrappers, orchestration, `kernel_config.json`).",
        "module": "string: the dotted name of the module that holds the entry.",
        "ready": "File: directory in state READY (GENERATED with binaries and `binary_manifest.json`).",
        "request": "File: the request record (JSON): digests of source and specialization.",
        "tools": "tuple of File: the records of the tool sets used; kernels with equal ones may share a bundle.",
    },
    init = _init,
)
