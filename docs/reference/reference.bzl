"""Pages made from the docstrings of Starlark files."""

load("//rules/private:action_python.bzl", "ActionPythonInfo")
load("//rules/private:python_program.bzl", "PROGRAM_ATTRS", "python_program")

# Every Starlark file that a documented one loads.
_STARLARK = [
    "//rules/private/providers:starlark",
    "//rules/private:starlark",
    "//rules:starlark",
    "//toolchains/cann:starlark",
    "//toolchains/extensions:starlark",
    "//toolchains/gcc:starlark",
    "//toolchains/private:starlark",
    "//toolchains/pto_isa:starlark",
    "//toolchains/ptoas:starlark",
    "//toolchains:starlark",
    "@bazel_skylib//rules:common_settings",
    "@rules_python//python:py_info_bzl",
]

def _reference_page_impl(ctx):
    python = ctx.attr._action_python[ActionPythonInfo]
    page = ctx.actions.declare_file(ctx.label.name + ".md")
    arguments = ctx.actions.args()
    arguments.add_all(["-I", "-S", "-B", "-X", "utf8", ctx.file._render, ctx.file.extracted, ctx.attr.loaded_as, page])
    ctx.actions.run(
        executable = python.interpreter,
        arguments = [arguments],
        env = {"PATH": "/usr/bin:/bin:/usr/local/bin"},
        inputs = depset([ctx.file._render, ctx.file.extracted], transitive = [python.files]),
        mnemonic = "PyptoReference",
        outputs = [page],
        toolchain = None,
    )
    return [DefaultInfo(files = depset([page]))]

_reference_page = rule(
    implementation = _reference_page_impl,
    attrs = {
        "extracted": attr.label(
            mandatory = True,
            allow_single_file = [".binaryproto"],
            doc = "What `starlark_doc_extract` found.",
        ),
        "loaded_as": attr.string(
            mandatory = True,
            doc = "How users name the file.",
        ),
        "_action_python": attr.label(
            default = Label("//rules/private:action_python"),
            cfg = "exec",
            providers = [ActionPythonInfo],
            doc = "The interpreter.",
        ),
        "_render": attr.label(
            default = Label("//docs/reference:render.py"),
            allow_single_file = True,
            doc = "The program that writes a page.",
        ),
    },
    doc = "One page of the reference.",
)

def _reference_update_impl(ctx):
    return [python_program(ctx, ctx.file._update, ctx.files.pages, ctx.files.pages)]

_reference_update = rule(
    implementation = _reference_update_impl,
    attrs = PROGRAM_ATTRS | {
        "pages": attr.label_list(
            allow_files = [".md"],
            doc = "The pages to copy.",
        ),
        "_update": attr.label(
            default = Label("//docs/reference:update.py"),
            allow_single_file = True,
            doc = "The program that copies them.",
        ),
    },
    doc = "`bazel run` on it writes the pages into the source tree.",
    executable = True,
)

def starlark_reference(name, pages):
    """Declares a page for each Starlark file, and `update`, which copies them into the source tree.

    Args:
      name: string; a filegroup of all pages.
      pages: dict of page to label of a Starlark file.
    """
    for page, source in pages.items():
        native.starlark_doc_extract(
            name = page + ".extracted",
            src = source,
            deps = _STARLARK,
            tags = ["manual"],
        )
        _reference_page(
            name = page,
            extracted = page + ".extracted",
            loaded_as = "@pypto" + source,
            tags = ["manual"],
        )
    native.filegroup(
        name = name,
        srcs = pages.keys(),
        tags = ["manual"],
    )
    _reference_update(
        name = "update",
        pages = pages.keys(),
        tags = ["manual"],
    )
