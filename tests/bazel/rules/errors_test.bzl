"""Tests of what a user reads when a target cannot be built."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//rules:defs.bzl", "pypto_kernel")

# In device mode the tools of the simulator are not fetched, so these tests are quick even in a fresh checkout.
_DEVICE = {str(Label("//rules:execution_mode")): "device"}

# A machine that the downloaded tools do not run on; the headers run nowhere, so a stand-in keeps them from being fetched.
_ELSEWHERE = {
    "//command_line_option:extra_toolchains": [str(Label("//tests/bazel/rules:fake_pto_isa_toolchain"))],
    "//command_line_option:host_platform": str(Label("//tests/bazel/rules:arm64")),
    str(Label("//rules:execution_mode")): "sim",
}

_ELSEWHERE_PARTS = [
    "//tests/bazel/rules:elsewhere_kernel cannot be built.",
    "needed:     a C++ compiler for the orchestration and for kernels in sim mode",
    "looked for: a registered toolchain of the type //toolchains/gcc:toolchain_type",
    "found:      none that runs on this kind of machine",
    "to mend it: build --extra_execution_platforms=//toolchains:linux_x86_64",
]

_DEVICE_PARTS = [
    "//tests/bazel/rules:device_kernel cannot be built.",
    "needed:     CANN (the compiler ccec and ld.lld) to compile Ascend950 kernels for the device",
    "looked for: a registered toolchain of the type //toolchains/cann:toolchain_type",
    "found:      none; CANN is proprietary",
    "to mend it: cann = use_extension(\"@pypto//toolchains/extensions:cann.bzl\", \"cann\")",
    "bazel build --//rules:execution_mode=sim //tests/bazel/rules:device_kernel",
    "bazel run //toolchains:doctor",
]

def _fails_with(parts):
    def _impl(ctx):
        env = analysistest.begin(ctx)
        for part in parts:
            asserts.expect_failure(env, part)
        return analysistest.end(env)

    return _impl

_device_test = analysistest.make(_fails_with(_DEVICE_PARTS), config_settings = _DEVICE, expect_failure = True)
_elsewhere_test = analysistest.make(
    _fails_with(_ELSEWHERE_PARTS),
    config_settings = _ELSEWHERE,
    expect_failure = True,
)
_path_test = analysistest.make(
    _fails_with(["the path of src, 'tests/bazel/rules/no-module.py', is no module name", "'no-module' is not an identifier"]),
    config_settings = _DEVICE,
    expect_failure = True,
)
_module_test = analysistest.make(
    _fails_with(["module = 'a.2b' is no module name", "'2b' is not an identifier"]),
    config_settings = _DEVICE,
    expect_failure = True,
)
_place_test = analysistest.make(
    _fails_with(["module = 'other.kernel' needs a src that ends in 'other/kernel.py', but src is 'tests/bazel/rules/kernel.py'"]),
    config_settings = _DEVICE,
    expect_failure = True,
)

def errors_test_suite(name):
    """Declares the tests of this file and the targets that cannot be built.

    Args:
      name: string; the suite's name.
    """
    native.platform(
        name = "arm64",
        constraint_values = [
            "@platforms//cpu:arm64",
            "@platforms//os:linux",
        ],
    )
    cases = [
        ("device", _device_test, {"src": "kernel.py"}),
        ("elsewhere", _elsewhere_test, {"src": "kernel.py"}),
        ("module", _module_test, {"module": "a.2b", "src": "kernel.py"}),
        ("path", _path_test, {"src": "no-module.py"}),
        ("place", _place_test, {"module": "other.kernel", "src": "kernel.py"}),
    ]
    for case, test, attributes in cases:
        pypto_kernel(name = case + "_kernel", backend_type = "Ascend950", tags = ["manual"], **attributes)
        test(name = case + "_test", size = "small", target_under_test = case + "_kernel")
    native.test_suite(name = name, tests = [case + "_test" for case, _, _ in cases])
