"""The rule `pypto_extern_kernel`."""

load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules/private:pypto_library.bzl", "LIBRARY_ATTRS", "library_providers")
load("//rules/private/providers:sources_info.bzl", "PyptoSourcesInfo")

def _pypto_extern_kernel_impl(ctx):
    return library_providers(
        ctx,
        native = ctx.files.srcs + ctx.files.hdrs,
        own = [ctx.file.stub],
        source_attributes = ["stub", "srcs", "hdrs"],
    )

pypto_extern_kernel = rule(
    implementation = _pypto_extern_kernel_impl,
    attrs = LIBRARY_ATTRS | {
        "hdrs": attr.label_list(
            allow_files = [".h", ".hpp", ".inc"],
            doc = "The local headers that `srcs` include. One that is missing here does not exist in a build.",
        ),
        "srcs": attr.label_list(
            mandatory = True,
            allow_empty = False,
            allow_files = [".cc", ".cce", ".cpp", ".cxx"],
            doc = "The C++ files, at the places that the stub names.",
        ),
        "stub": attr.label(
            mandatory = True,
            allow_single_file = [".py"],
            doc = "The Python file with the `@pl.jit.extern` function.",
        ),
    },
    doc = """A kernel that is hand-written in C++, with its stub in Python; for `deps` of `pypto_library` and `pypto_kernel`.

```starlark
pypto_extern_kernel(
    name = "rope",
    stub = "rope.py",
    srcs = ["rope.cpp"],
    hdrs = ["rope_tables.h"],
)
```

The C++ is packed into the generated directory of every kernel that calls it, and takes part in its key.""",
    provides = [PyInfo, PyptoSourcesInfo],
)
