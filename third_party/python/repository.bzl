"""The repository of the pinned wheels, fetched through the user's own pip."""

load("//toolchains/private:fetch.bzl", "run_python")

_LOCK = Label("//third_party/python:wheels.json")
_PROGRAM = Label("//third_party/python:fetch_wheels.py")

_BUILD = """\
# One folder for each Python: cp311, cp312, ...
filegroup(
    name = "wheels",
    srcs = glob(["cp*/**"]),
    visibility = ["//visibility:public"],
)
"""

def _wheels_repository_impl(rctx):
    rctx.watch(_LOCK)
    run_python(
        rctx,
        what = "the Python packages of kernel tests",
        arguments = ["-B", str(rctx.path(_PROGRAM)), str(rctx.path(_LOCK)), "."],
    )
    rctx.file("BUILD.bazel", _BUILD)

wheels_repository = repository_rule(
    implementation = _wheels_repository_impl,
    doc = "NumPy and ml_dtypes of `wheels.json`, unpacked, one folder for each Python.",
)
