"""The rule `pypto_kernel_test`, which is skipped where kernels are built for the device."""

load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules/private:messages.bzl", "shown_label")
load("//rules/private:python_program.bzl", "PROGRAM_ATTRS", "python_program", "runfiles_path")
load("//rules/private:requires_device.bzl", "requires_simulator")
load("//rules/private/providers:bundle_info.bzl", "PyptoBundleInfo")

def _one_kernel(ctx):
    kernels = ctx.attr.kernel[PyptoBundleInfo].kernels.to_list()
    wanted = ctx.attr.entry
    entries = sorted({kernel.entry: None for kernel in kernels})
    if wanted and wanted not in entries:
        fail("{} holds no entry '{}'; it holds {}".format(shown_label(ctx.attr.kernel.label), wanted, ", ".join(entries)))
    if not wanted and len(entries) > 1:
        fail("{} holds {}: name one by the attribute entry".format(shown_label(ctx.attr.kernel.label), ", ".join(entries)))
    return wanted or entries[0]

def _pypto_kernel_test_impl(ctx):
    entry = _one_kernel(ctx)
    info = ctx.attr.kernel[PyptoBundleInfo]
    bundles = [bundle for _, bundle in sorted(info.bundles.items())]
    imports = depset(transitive = [dep[PyInfo].imports for dep in ctx.attr.deps]).to_list()
    plan = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(plan, json.encode_indent({
        "arguments": ctx.attr.arguments,
        "bundles": [runfiles_path(ctx, bundle) for bundle in bundles],
        "dimensions": ctx.attr.dimensions,
        "entry": entry,
        "function": ctx.attr.function or entry,
        "golden": runfiles_path(ctx, ctx.file.golden),
        "golden_arguments": ctx.attr.golden_arguments,
        "inputs": ctx.attr.inputs,
        "imports": [ctx.workspace_name] + imports,
        "ranks": ctx.attr.ranks,
        "seed": ctx.attr.seed,
        "tolerance": ctx.attr.tolerance,
        "wheels": sorted({runfiles_path(ctx, file).partition("/")[0]: None for file in ctx.files._wheels}),
    }) + "\n")
    return [
        python_program(
            ctx,
            ctx.file._program,
            [plan],
            [plan, ctx.file.golden] + bundles + ctx.files._wheels,
            runfiles = [dep[DefaultInfo].default_runfiles for dep in ctx.attr.deps],
        ),
        coverage_common.instrumented_files_info(ctx, dependency_attributes = ["kernel", "deps"], source_attributes = ["golden"]),
    ]

_pypto_kernel_test = rule(
    implementation = _pypto_kernel_test_impl,
    attrs = PROGRAM_ATTRS | {
        "arguments": attr.string_dict(
            doc = "The value of every scalar parameter, by name: `{\"seq_len\": \"130\"}`.",
        ),
        "deps": attr.label_list(
            providers = [PyInfo],
            doc = "Python libraries that the golden function's module imports. NumPy and ml_dtypes need no mention.",
        ),
        "dimensions": attr.string_dict(
            doc = "The size of every dynamic dimension, by name: `{\"S\": \"200\"}`.",
        ),
        "entry": attr.string(
            doc = "Which kernel of a bundle with several.",
        ),
        "function": attr.string(
            doc = "The golden function's name. Default: the entry's.",
        ),
        "golden": attr.label(
            mandatory = True,
            allow_single_file = [".py"],
            doc = "The Python file with the golden function. It is called with every parameter that the kernel reads, in the " +
                  "kernel's order, and returns what the kernel writes: one array, or a tuple of them.",
        ),
        "golden_arguments": attr.string_dict(
            doc = "Further arguments of the golden function, by name, each a number: `{\"eps\": \"1e-6\"}`.",
        ),
        "inputs": attr.string(
            doc = "The name of a function of the golden file that makes tensors which random numbers could not stand for, such as " +
                  "indices: `inputs(numbers, shapes)` is given a `numpy.random.Generator` and every tensor's shape by name, and " +
                  "returns arrays by name. The other tensors are random.",
        ),
        "kernel": attr.label(
            mandatory = True,
            providers = [PyptoBundleInfo],
            doc = "The `pypto_kernel` or `pypto_bundle` to run.",
        ),
        "ranks": attr.int(
            doc = "The number of ranks that a distributed program (`@pl.jit.host`) runs on.",
        ),
        "seed": attr.int(
            default = 1,
            doc = "Of the random tensors.",
        ),
        "tolerance": attr.string(
            doc = "The largest error allowed, relative to the largest number of the result (at least 1). Default: by the narrowest " +
                  "data type among the tensors: 2^-18 for FP32, 2^-9 for FP16, 2^-6 for BF16; integers must be equal.",
        ),
        "_program": attr.label(
            default = Label("//rules/private:kernel_test.py"),
            allow_single_file = True,
            doc = "The program that runs the kernel.",
        ),
        "_wheels": attr.label(
            default = Label("@pypto_wheels//:wheels"),
            allow_files = True,
            doc = "NumPy and ml_dtypes.",
        ),
    },
    doc = "Runs a kernel on the simulator and compares it with a golden function in NumPy.",
    test = True,
)

def pypto_kernel_test(name, kernel, golden, target_compatible_with = [], **kwargs):
    """Runs a kernel on the simulator and compares it with a golden function in NumPy.

    ```starlark
    pypto_kernel_test(
        name = "decode_test",
        kernel = ":decode_a2a3",
        golden = "golden/decode.py",
        dimensions = {"S": "200"},
        arguments = {"seq_len": "130"},
    )
    ```

    Tensors hold random numbers, the same in every run; outputs are filled with NaN first, so that an element that the
    kernel forgets is seen. The simulator's checks are on. The machine needs no compiler and no NumPy. NumPy is fetched for
    the Python of this machine; where another one runs the tests, `--@pypto//rules:kernel_test_python` names it, or `all`.
    In the execution mode `device` these tests are skipped.

    Args:
      name: string; the target's name.
      kernel: label; the `pypto_kernel` or `pypto_bundle` to run.
      golden: label; the Python file with the golden function. It is called with every parameter that the kernel reads, in
        the kernel's order, and returns what the kernel writes: one array, or a tuple of them.
      target_compatible_with: as of every rule.
      **kwargs: the attributes below, and those of every test (`size`, `tags`, ...).

        `function`: the golden function's name; default: the entry's.
        `entry`: which kernel of a bundle with several.
        `dimensions`: the size of every dynamic dimension, by name: `{"S": "200"}`.
        `arguments`: the value of every scalar parameter, by name: `{"seq_len": "130"}`.
        `golden_arguments`: further arguments of the golden function, by name, each a number: `{"eps": "1e-6"}`.
        `inputs`: the name of a function of the golden file that makes tensors which random numbers could not stand for, such
        as indices: `inputs(numbers, shapes)` is given a `numpy.random.Generator` and every tensor's shape by name, and
        returns arrays by name; the other tensors are random.
        `deps`: Python libraries that the golden file imports; NumPy and ml_dtypes need no mention.
        `ranks`: the number of ranks that a distributed program (`@pl.jit.host`) runs on.
        `seed`: of the random tensors; default 1.
        `tolerance`: the largest error allowed, relative to the largest number of the result (at least 1); default: by the
        narrowest data type among the tensors: 2^-18 for FP32, 2^-9 for FP16, 2^-6 for BF16; integers must be equal.
    """
    _pypto_kernel_test(
        name = name,
        golden = golden,
        kernel = kernel,
        target_compatible_with = target_compatible_with + requires_simulator(),
        **kwargs
    )
