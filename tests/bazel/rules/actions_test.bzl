"""Tests of the actions of `pypto_kernel`: what runs, with which command line and environment."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("@rules_python//python:py_library.bzl", "py_library")
load("//rules:defs.bzl", "pypto_bundle", "pypto_kernel")
load("//rules:providers.bzl", "PyptoBundleInfo", "PyptoKernelInfo")
load("//toolchains/gcc:toolchain.bzl", "gcc_toolchain")
load("//toolchains/pto_isa:toolchain.bzl", "pto_isa_toolchain")
load("//toolchains/ptoas:toolchain.bzl", "ptoas_toolchain")

_PACKAGE = "tests/bazel/rules"

# Trees without a tool in them: the actions are looked at, not run.
_WITH_FAKE_TOOLS = {
    "//command_line_option:extra_toolchains": [str(Label("//tests/bazel/rules:all"))],
    str(Label("//rules:execution_mode")): "sim",
}

_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/bin:/bin:/usr/local/bin",
    "TZ": "UTC",
}

_STEPS = {
    "PyptoAssemble": ["pypto.build", "assemble"],
    "PyptoCheckSources": ["rules/private/check_sources.py"],
    "PyptoCompile": ["pypto.build", "compile"],
    "PyptoGenerate": ["pypto.build", "generate"],
    "PyptoSeal": ["pypto.build", "seal"],
    "PyptoSelect": ["rules/private/select_pto.py"],
    "PyptoVerify": ["rules/private/verify.py"],
}

def _actions(env):
    return {action.mnemonic: action for action in analysistest.target_actions(env)}

def _after(argv, option):
    return [argv[i + 1] for i in range(len(argv) - 1) if argv[i] == option]

def _steps_test_impl(ctx):
    env = analysistest.begin(ctx)
    actions = _actions(env)
    steps = {"PyptoDescribe": ["pypto.toolchain", "describe"]} if "PyptoDescribe" in actions else _STEPS
    asserts.equals(env, sorted(steps), sorted(actions))
    for mnemonic, step in steps.items():
        argv = actions[mnemonic].argv
        asserts.equals(env, ["-I", "-S", "-B", "-X", "utf8", "rules/private/step.py"] + step, argv[1:7 + len(step)])
        asserts.equals(env, _ENVIRONMENT, actions[mnemonic].env)
        asserts.equals(env, [], [word for word in argv if word.startswith("/") or "=/" in word])
    return analysistest.end(env)

def _generate_test_impl(ctx):
    env = analysistest.begin(ctx)
    argv = _actions(env)["PyptoGenerate"].argv
    asserts.equals(env, ["tests.bazel.rules.kernel"], _after(argv, "--module"))
    asserts.equals(env, ["attention"], _after(argv, "--entry"))
    asserts.equals(env, ["Ascend910B"], _after(argv, "--backend-type"))
    asserts.equals(env, ["sim"], _after(argv, "--execution-mode"))
    asserts.equals(env, ["k=FP16[128,64]", "q=FP16[16,128]"], _after(argv, "--tensor"))
    asserts.equals(env, ["optimize=1"], _after(argv, "--option"))
    roots = _after(argv, "--import-root")
    asserts.equals(env, [".", "tests/bazel"], roots[:2])
    asserts.equals(env, [True], [root.startswith("bazel-out/") and root.endswith("/bin/tests/bazel") for root in roots[2:]])
    return analysistest.end(env)

def _tools_test_impl(ctx):
    env = analysistest.begin(ctx)
    actions = _actions(env)
    asserts.equals(env, ["ptoas=tests/bazel/rules/fake/ptoas"], _after(actions["PyptoAssemble"].argv, "--root"))
    asserts.equals(
        env,
        ["gcc=tests/bazel/rules/fake/gcc", "isa=tests/bazel/rules/fake/isa"],
        _after(actions["PyptoCompile"].argv, "--root"),
    )
    return analysistest.end(env)

def _outputs_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    bundles = target[DefaultInfo].files.to_list()
    asserts.equals(env, [_PACKAGE + "/kernel_under_test.bundle"], [file.short_path for file in bundles])
    asserts.equals(env, [True], [file.is_directory for file in bundles])
    asserts.equals(env, bundles, target[DefaultInfo].default_runfiles.files.to_list())
    asserts.equals(env, {"Ascend910B": bundles[0]}, target[PyptoBundleInfo].bundles)
    kernel = target[PyptoKernelInfo]
    asserts.equals(env, [kernel], target[PyptoBundleInfo].kernels.to_list())
    asserts.equals(env, ("tests.bazel.rules.kernel", "attention", "Ascend910B", "sim"), (kernel.module, kernel.entry, kernel.backend_type, kernel.execution_mode))
    asserts.equals(env, [kernel.generated], target[OutputGroupInfo].generated.to_list())
    asserts.equals(env, [kernel.assembled], target[OutputGroupInfo].cpp.to_list())
    asserts.equals(env, [kernel.ready], target[OutputGroupInfo].objects.to_list())
    asserts.equals(env, [_PACKAGE + "/kernel_under_test.pypto/pto"], [file.short_path for file in target[OutputGroupInfo].pto.to_list()])
    asserts.equals(env, [_PACKAGE + "/kernel_under_test.pypto/checked"], [file.short_path for file in target[OutputGroupInfo]._validation.to_list()])
    asserts.equals(env, [_PACKAGE + "/kernel_under_test.pypto/verified"], [file.short_path for file in target[OutputGroupInfo].verified.to_list()])
    digest = target[PyptoBundleInfo].digests["Ascend910B"]
    asserts.equals(env, _PACKAGE + "/kernel_under_test.bundle.digest", digest.short_path)
    asserts.equals(env, [digest, kernel.request, kernel.descriptor], target[OutputGroupInfo].manifest.to_list())

    # One for all kernels of a configuration.
    asserts.equals(env, "rules/private/toolchain.json", kernel.descriptor.short_path)
    return analysistest.end(env)

def _identity_test_impl(ctx):
    env = analysistest.begin(ctx)
    seal = _actions(env)["PyptoSeal"].argv
    asserts.equals(env, ["content"], _after(seal, "--cache-identity"))
    asserts.equals(env, ["1"], _after(seal, "--cache-strict"))
    asserts.equals(env, ["release-7"], _after(seal, "--cache-epoch"))
    return analysistest.end(env)

def _descriptor_test_impl(ctx):
    env = analysistest.begin(ctx)
    describe = _actions(env)["PyptoDescribe"].argv
    asserts.equals(env, ["tests/bazel/rules/fake/gcc"], _after(describe, "--gcc"))
    asserts.equals(env, ["content"], _after(describe, "--cache-identity"))
    asserts.equals(env, ["1"], _after(describe, "--cache-strict"))
    return analysistest.end(env)

def _bundle_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[PyptoBundleInfo]
    asserts.equals(
        env,
        {
            "Ascend910B": _PACKAGE + "/two_families.bundle/Ascend910B",
            "Ascend950": _PACKAGE + "/two_families.bundle/Ascend950",
        },
        {backend_type: bundle.short_path for backend_type, bundle in info.bundles.items()},
    )

    # The kernel that names a family itself is sealed once, the other one for both.
    asserts.equals(
        env,
        [("attention", "Ascend910B"), ("open", "Ascend910B"), ("open", "Ascend950")],
        sorted([(kernel.entry, kernel.backend_type) for kernel in info.kernels.to_list()]),
    )
    return analysistest.end(env)

_steps_test = analysistest.make(_steps_test_impl, config_settings = _WITH_FAKE_TOOLS)
_generate_test = analysistest.make(_generate_test_impl, config_settings = _WITH_FAKE_TOOLS)
_tools_test = analysistest.make(_tools_test_impl, config_settings = _WITH_FAKE_TOOLS)
_outputs_test = analysistest.make(_outputs_test_impl, config_settings = _WITH_FAKE_TOOLS)
_bundle_test = analysistest.make(_bundle_test_impl, config_settings = _WITH_FAKE_TOOLS)
_WITH_SETTINGS = _WITH_FAKE_TOOLS | {
    str(Label("//rules:cache_epoch")): "release-7",
    str(Label("//rules:cache_identity")): "content",
    str(Label("//rules:cache_strict")): True,
}
_descriptor_test = analysistest.make(_descriptor_test_impl, config_settings = _WITH_SETTINGS)
_identity_test = analysistest.make(_identity_test_impl, config_settings = _WITH_SETTINGS)

def _fake_tool_set(name, tool_set, rule, version):
    rule(
        name = "fake_" + name,
        evidence = "fake/{}/set.json".format(tool_set),
        files = [],
        tags = ["manual"],
        version = version,
    )
    native.toolchain(
        name = "fake_{}_toolchain".format(name),
        toolchain = "fake_" + name,
        toolchain_type = Label("//toolchains/{}:toolchain_type".format(name)),
    )

def actions_test_suite(name):
    """Declares the tests of this file, the kernel they look at and its tools.

    Args:
      name: string; the suite's name.
    """
    _fake_tool_set("gcc", "gcc", gcc_toolchain, "12.2")
    _fake_tool_set("pto_isa", "isa", pto_isa_toolchain, "0.1.4")
    _fake_tool_set("ptoas", "ptoas", ptoas_toolchain, "0.1.1")
    py_library(
        name = "helpers",
        srcs = ["helpers.py"],
        imports = [".."],
        tags = ["manual"],
    )
    pypto_kernel(
        name = "kernel_under_test",
        src = "kernel.py",
        backend_type = "Ascend910B",
        entry = "attention",
        options = {"optimize": "1"},
        tags = ["manual"],
        tensors = {
            "k": "FP16[128,64]",
            "q": "FP16[16,128]",
        },
        deps = ["helpers"],
    )
    pypto_kernel(
        name = "open_kernel",
        src = "kernel.py",
        entry = "open",
        tags = ["manual"],
    )
    pypto_bundle(
        name = "two_families",
        backend_types = ["Ascend910B", "Ascend950"],
        kernels = ["kernel_under_test", "open_kernel"],
        tags = ["manual"],
    )
    cases = {
        "bundle_test": _bundle_test,
        "descriptor_steps_test": _steps_test,
        "descriptor_test": _descriptor_test,
        "generate_test": _generate_test,
        "identity_test": _identity_test,
        "outputs_test": _outputs_test,
        "steps_test": _steps_test,
        "tools_test": _tools_test,
    }
    targets = {
        "bundle_test": "two_families",
        "descriptor_steps_test": "//rules/private:toolchain_descriptor",
        "descriptor_test": "//rules/private:toolchain_descriptor",
    }
    for case, test in cases.items():
        test(
            name = case,
            size = "small",
            target_under_test = targets.get(case, "kernel_under_test"),
        )
    native.test_suite(name = name, tests = cases.keys())
