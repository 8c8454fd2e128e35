"""Fetching one tool set of the lock file into a repository."""

# The folder of MODULE.bazel is the one that holds `pypto/`.
_MODULE_FILE = Label("//:MODULE.bazel")
_LOCK = Label("//pypto:toolchain/lock.json")

_PYTHONS = ["python3", "python3.13", "python3.12", "python3.11"]
_EVIDENCE = "root/set.json"

_BUILD = """\
load({rule_file}, {rule_name})

{function}(
    name = "toolchain",
    evidence = {evidence},
    files = glob(["root/**"]),
    version = {version},
    visibility = ["//visibility:public"],
)
"""

def fetch_tool_set(rctx, tool_set, rule_file, rule_name):
    """Fetches a tool set into `root/` and offers it as a toolchain.

    `pypto.toolchain` does the work, so that Bazel and `python -m pypto.toolchain install` get the same tree.

    Args:
      rctx: the repository context.
      tool_set: string; the set's name in the lock file.
      rule_file: Label of the file that defines the toolchain rule.
      rule_name: string; the rule's name.
    """
    source = rctx.path(_MODULE_FILE).dirname
    rctx.watch(_LOCK)

    # Only the code itself: watching the folder would fetch again after every bytecode file written beside it.
    for entry in source.get_child("pypto", "toolchain").readdir(watch = "no"):
        if entry.basename.endswith(".py"):
            rctx.watch(entry)

    version = _locked_version(rctx, tool_set)
    rctx.report_progress("fetching {} {}".format(tool_set, version))
    python = _python(rctx, tool_set)
    rctx.execute([python, "-I", "-c", "import os; os.mkdir('root')"])
    result = rctx.execute(
        [python, "-B", "-m", "pypto.toolchain", "fetch-set", tool_set, "--into", "root"],
        environment = {"PYTHONPATH": str(source)},
        quiet = False,
        timeout = 3600,
    )
    if result.return_code != 0:
        # What came before the error has been shown as progress already.
        said = (result.stderr.strip() or result.stdout.strip()).rpartition("pypto: error: ")[2]
        fail("\npypto's tool set '{}' could not be fetched: {}".format(tool_set, said))
    rctx.file("BUILD.bazel", _BUILD.format(
        evidence = repr(_EVIDENCE),
        function = rule_name,
        rule_file = repr(str(rule_file)),
        rule_name = repr(rule_name),
        version = repr(version),
    ))

def _locked_version(rctx, tool_set):
    lock = json.decode(rctx.read(_LOCK))
    return lock["sets"][tool_set]["version"]

def _python(rctx, tool_set):
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
        "pypto's tool set '{}' cannot be fetched.".format(tool_set),
        "  needed:     a Python from 3.11 to 3.13, which downloads and unpacks the tools",
        "  looked for: {} on PATH".format(", ".join(_PYTHONS)),
        "  found:      {}".format(", ".join(found) or "none of them"),
        "  to mend it: bazel build --repo_env=PATH=<folder of such a python3>:/usr/bin:/bin ...",
    ]))
