"""Running pypto's own Python in a repository rule, and fetching one tool set of the lock file with it."""

# The folder of MODULE.bazel is the one that holds `pypto/`.
_MODULE_FILE = Label("//:MODULE.bazel")
_LOCK = Label("//pypto:toolchain/lock.json")

_PYTHONS = ["python3", "python3.13", "python3.12", "python3.11"]

def run_python(rctx, what, arguments, quiet = False):
    """Runs a program with pypto importable, with a Python from PATH.

    Args:
      rctx: the repository context.
      what: string; what is being made, for messages: "the tool set 'gcc'".
      arguments: list of strings; the interpreter's arguments.
      quiet: bool; whether its output is not shown while it runs.

    Returns:
      What the program wrote to standard output.
    """
    source = rctx.path(_MODULE_FILE).dirname

    # Only the code itself: watching the folder would fetch again after every bytecode file written beside it.
    for entry in source.get_child("pypto", "toolchain").readdir(watch = "no"):
        if entry.basename.endswith(".py"):
            rctx.watch(entry)
    result = rctx.execute(
        [_python(rctx, what)] + arguments,
        environment = {"PYTHONPATH": str(source)},
        quiet = quiet,
        timeout = 3600,
    )
    if result.return_code != 0:
        # What came before the error has been shown as progress already.
        said = (result.stderr.strip() or result.stdout.strip()).rpartition("pypto: error: ")[2]
        fail("\npypto could not make {}: {}".format(what, said))
    return result.stdout

def fetch_tool_set(rctx, tool_set, arguments = None):
    """Fetches a tool set of the lock file into `root/`.

    `pypto.toolchain` does the work, so that Bazel and `python -m pypto.toolchain install` get the same tree.

    Args:
      rctx: the repository context.
      tool_set: string; the set's name in the lock file.
      arguments: list of strings; the interpreter's, when another program than pypto's own does it.

    Returns:
      The version of the lock entry.
    """
    rctx.watch(_LOCK)
    version = json.decode(rctx.read(_LOCK))["sets"][tool_set]["version"]
    rctx.report_progress("fetching {} {}".format(tool_set, version))
    make_folder(rctx, "root")
    run_python(
        rctx,
        what = "the tool set '{}'".format(tool_set),
        arguments = arguments or ["-B", "-m", "pypto.toolchain", "fetch-set", tool_set, "--into", "root"],
    )
    return version

def make_folder(rctx, name):
    """Makes an empty folder in the repository.

    Args:
      rctx: the repository context.
      name: string; its path.
    """
    rctx.file(name + "/.keep")
    rctx.delete(name + "/.keep")

def write_toolchain(rctx, rule_file, rule_name, version, folder = "", more = ""):
    """Writes the BUILD file that offers the tree in `root/` as the target `toolchain`.

    Args:
      rctx: the repository context.
      rule_file: Label of the file that defines the toolchain rule.
      rule_name: string; the rule's name.
      version: string; shown in messages.
      folder: string; where the tree lies if it is an installation of the machine.
      more: string; further text of the BUILD file.
    """
    rctx.file("BUILD.bazel", """\
load({rule_file}, {rule_name})

{function}(
    name = "toolchain",
    evidence = "root/set.json",
    files = glob(["root/**"]),
    folder = {folder},
    version = {version},
    visibility = ["//visibility:public"],
)
{more}""".format(
        folder = repr(folder),
        function = rule_name,
        more = more,
        rule_file = repr(str(rule_file)),
        rule_name = repr(rule_name),
        version = repr(version),
    ))

def _python(rctx, what):
    found = []
    for name in _PYTHONS:
        path = rctx.which(name)
        if not path:
            continue
        version = rctx.execute([path, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).stdout.strip()
        if version in ["3.11", "3.12", "3.13"]:
            return path
        found.append("{} ({})".format(path, version or "does not start"))
    fail("\n".join([
        "",
        "pypto cannot make {}.".format(what),
        "  needed:     a Python from 3.11 to 3.13, which downloads and unpacks the tools",
        "  looked for: {} on PATH".format(", ".join(_PYTHONS)),
        "  found:      {}".format(", ".join(found) or "none of them"),
        "  to mend it: bazel build --repo_env=PATH=<folder of such a python3>:/usr/bin:/bin ...",
    ]))
