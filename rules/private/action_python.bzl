"""The interpreter that runs the Python steps of actions."""

ActionPythonInfo = provider(
    doc = "A Python 3 interpreter for the machine that runs actions.",
    fields = {
        "files": "depset of File: the interpreter, if it is a file, and what it needs.",
        "interpreter": "File or string: the executable; a string is an absolute path on the executing machine.",
    },
)

_PYTHON_TOOLCHAIN_TYPE = "@rules_python//python:toolchain_type"

def _action_python_impl(ctx):
    runtime = ctx.toolchains[_PYTHON_TOOLCHAIN_TYPE].py3_runtime
    own = [runtime.interpreter] if runtime.interpreter else []
    return [ActionPythonInfo(
        files = depset(own, transitive = [runtime.files] if runtime.files else []),
        interpreter = runtime.interpreter or runtime.interpreter_path,
    )]

action_python = rule(
    implementation = _action_python_impl,
    doc = "Resolves the user's Python toolchain. Depended on with `cfg = \"exec\"`, it gives the one for actions.",
    provides = [ActionPythonInfo],
    toolchains = [_PYTHON_TOOLCHAIN_TYPE],
)
