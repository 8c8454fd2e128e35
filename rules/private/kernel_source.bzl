"""What a kernel is compiled from, and for what."""

load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules/private:module_name.bzl", "module_of")
load("//rules/private:pypto_library.bzl", "native_sources_of")

def kernel_source(src, attributes, backend_type, execution_mode):
    """The struct that `generate` takes.

    Args:
      src: File; the file with the entry.
      attributes: the attributes of a `pypto_kernel` (`ctx.attr`, or `ctx.rule.attr` in an aspect).
      backend_type: string; the hardware family.
      execution_mode: string; `sim` or `device`.

    Returns:
      A struct; its fields are documented at `generate`.
    """
    module = module_of(src, attributes.module)
    return struct(
        backend_type = backend_type,
        entry = attributes.entry or module.name.rpartition(".")[2],
        execution_mode = execution_mode,
        import_roots = module.import_roots,
        imports = depset(transitive = [dep[PyInfo].imports for dep in attributes.deps]),
        module = module.name,
        native_sources = depset(transitive = native_sources_of(attributes.deps)),
        options = attributes.options,
        sources = depset([src], transitive = [dep[PyInfo].transitive_sources for dep in attributes.deps]),
        tensors = attributes.tensors,
    )
