"""The repositories of the pinned wheels, fetched through the user's own pip."""

load("//toolchains/private:fetch.bzl", "run_python")

PYTHONS = ["3.11", "3.12", "3.13"]

_LOCK = Label("//third_party/python:wheels.json")
_PROGRAM = Label("//third_party/python:fetch_wheels.py")
_FLAG = Label("//rules:kernel_test_python")

# Where Python toolchains that name no version look at run time, beside the PATH of whoever starts Bazel.
_FOLDERS = ["/usr/bin", "/bin", "/usr/local/bin"]

_BUILD = """\
# One folder for each Python: cp311, cp312, ...
filegroup(
    name = "wheels",
    srcs = glob(["cp*/**"]),
    visibility = ["//visibility:public"],
)
"""

def _of_this_machine(rctx):
    places = [rctx.which("python3")] + [rctx.path(folder + "/python3") for folder in _FOLDERS]
    found = {}
    for place in places:
        if place and place.exists:
            done = rctx.execute([place, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
            found[done.stdout.strip()] = True
    return [python for python in PYTHONS if python in found] or PYTHONS

def _wheels_repository_impl(rctx):
    rctx.watch(_LOCK)
    pythons = rctx.attr.pythons or _of_this_machine(rctx)
    run_python(
        rctx,
        what = "the Python packages of kernel tests",
        arguments = ["-B", str(rctx.path(_PROGRAM)), str(rctx.path(_LOCK)), "."] + pythons,
    )
    rctx.file("BUILD.bazel", _BUILD)

wheels_repository = repository_rule(
    implementation = _wheels_repository_impl,
    attrs = {
        "pythons": attr.string_list(doc = "For which Pythons; those of this machine if none is named."),
    },
    doc = "NumPy and ml_dtypes of `wheels.json`, unpacked, one folder for each Python.",
    environ = ["PATH"],
)

def _wheels_hub_impl(rctx):
    settings = []
    chosen = {}
    for python in PYTHONS + ["all"]:
        settings.append("config_setting(name = {}, flag_values = {{{}: {}}})\n".format(
            repr("is_" + python),
            repr(str(_FLAG)),
            repr(python),
        ))
        chosen[":is_" + python] = "@pypto_wheels_{}//:wheels".format(python.replace(".", "_"))
    chosen[":is_all"] = ":every"
    chosen["//conditions:default"] = "@pypto_wheels_machine//:wheels"
    every = ["@pypto_wheels_{}//:wheels".format(python.replace(".", "_")) for python in PYTHONS]
    rctx.file("BUILD.bazel", "\n".join(settings + [
        "alias(name = \"wheels\", actual = select({}), visibility = [\"//visibility:public\"])\n".format(repr(chosen)),
        "filegroup(name = \"every\", srcs = {})\n".format(repr(every)),
    ]))

wheels_hub = repository_rule(
    implementation = _wheels_hub_impl,
    doc = "Chooses among the repositories of wheels without fetching one.",
)
