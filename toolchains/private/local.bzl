"""Finding an installation of the machine, with evidence of what it is."""

load("//toolchains/private:fetch.bzl", "make_folder", "run_python", "write_toolchain")

_PROBE = Label("//toolchains/probe:probe.py")

def find_local(rctx, tool_set, rule_file, rule_name, variable = "", watched = []):
    """Probes an installation and offers it as a toolchain; fails with everything that is missing.

    Args:
      rctx: the repository context; its attributes may be `path` and `revision`.
      tool_set: string; the set's name in a toolchain descriptor.
      rule_file: Label of the file that defines the toolchain rule.
      rule_name: string; the rule's name.
      variable: string; the environment variable that names the installation when `path` does not.
      watched: list of strings; files of the installation that say when it is another one.
    """
    path = rctx.attr.path
    if not path and variable:
        path = rctx.getenv(variable) or ""
    arguments = ["-B", str(rctx.path(_PROBE)), tool_set, "--into", "root"]
    if path:
        arguments.append("--path=" + path)
    if getattr(rctx.attr, "revision", ""):
        arguments.append("--revision=" + rctx.attr.revision)
    for name in watched:
        if path.startswith("/"):
            rctx.watch(path + "/" + name)
    make_folder(rctx, "root")
    found = json.decode(run_python(rctx, what = "the local tool set '{}'".format(tool_set), arguments = arguments, quiet = True))
    for name in found["watch"]:
        rctx.watch(name)
    write_toolchain(rctx, rule_file, rule_name, version = found["version"], folder = found["folder"])
