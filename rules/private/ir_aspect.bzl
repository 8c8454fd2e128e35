"""The aspect `pypto_ir`."""

load("//rules/private:actions.bzl", "STEP_ATTRS", "dump_ir")
load("//rules/private:kernel_source.bzl", "kernel_source")
load("//rules/private/providers:kernel_info.bzl", "PyptoKernelInfo")

def _pypto_ir_impl(target, ctx):
    if PyptoKernelInfo not in target:
        kernels = getattr(ctx.rule.attr, "kernels", [])
        listed = [kernel[OutputGroupInfo].pypto_ir for kernel in kernels if hasattr(kernel[OutputGroupInfo], "pypto_ir")]
        return [OutputGroupInfo(pypto_ir = depset(transitive = listed))]
    info = target[PyptoKernelInfo]
    kernel = kernel_source(ctx.rule.file.src, ctx.rule.attr, info.backend_type, info.execution_mode)
    parsed = ctx.actions.declare_file(target.label.name + ".pypto/parsed.ir")
    lowered = ctx.actions.declare_file(target.label.name + ".pypto/lowered.ir")
    dump_ir(ctx, kernel, ctx.file._dump_ir, parsed, lowered)
    return [OutputGroupInfo(pypto_ir = depset([parsed, lowered]))]

pypto_ir = aspect(
    implementation = _pypto_ir_impl,
    attr_aspects = ["kernels"],
    attrs = STEP_ATTRS | {
        "_dump_ir": attr.label(
            default = Label("//rules/private:dump_ir.py"),
            allow_single_file = True,
            cfg = "exec",
            doc = "The program that prints it.",
        ),
    },
    doc = "Output group `pypto_ir`: the IR of a kernel as it is parsed and after all passes, as text.",
)
