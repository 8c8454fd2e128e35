"""Executables that are Python programs of pypto: `bazel run` targets and tests."""

load("//rules/private:action_python.bzl", "ActionPythonInfo")

PROGRAM_ATTRS = {
    "_launcher": attr.label(
        default = Label("//rules/private:launcher.sh.tpl"),
        allow_single_file = True,
        doc = "Starts the interpreter from the runfiles.",
    ),
    "_pypto": attr.label(
        default = Label("//pypto"),
        doc = "The package that the program imports.",
    ),
    "_python": attr.label(
        default = Label("//rules/private:action_python"),
        providers = [ActionPythonInfo],
        doc = "The interpreter on the machine where the program runs.",
    ),
    "_step": attr.label(
        default = Label("//rules/private:step.py"),
        allow_single_file = True,
        doc = "The program that makes pypto importable.",
    ),
}

def runfiles_path(ctx, file):
    """Where a file is below the folder of runfiles.

    Args:
      ctx: the rule's context.
      file: File.

    Returns:
      The path, which begins with the canonical name of a repository.
    """
    return file.short_path[3:] if file.short_path.startswith("../") else ctx.workspace_name + "/" + file.short_path

def python_program(ctx, program, arguments, files, runfiles = []):
    """Declares an executable that runs a Python program with pypto importable.

    Args:
      ctx: context of a rule with `PROGRAM_ATTRS`.
      program: File; the Python program.
      arguments: list of strings and Files; its first arguments, a File as its path in the runfiles (absolute).
      files: list of File; what it reads.
      runfiles: list of runfiles; what it reads besides.

    Returns:
      A DefaultInfo.
    """
    python = ctx.attr._python[ActionPythonInfo]
    interpreter = python.interpreter
    if type(interpreter) == "File":
        interpreter = "$runfiles/" + runfiles_path(ctx, interpreter)
    words = []
    for argument in arguments:
        if type(argument) == "File":
            words.append('"$runfiles/{}"'.format(runfiles_path(ctx, argument)))
        else:
            words.append("'{}'".format(argument.replace("'", "'\\''")))
    executable = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.expand_template(
        is_executable = True,
        output = executable,
        substitutions = {
            "%{arguments}": " ".join(words),
            "%{interpreter}": interpreter,
            "%{program}": runfiles_path(ctx, program),
            "%{step}": runfiles_path(ctx, ctx.file._step),
        },
        template = ctx.file._launcher,
    )
    collected = ctx.runfiles([program, ctx.file._step] + files, transitive_files = python.files)
    return DefaultInfo(
        executable = executable,
        runfiles = collected.merge(ctx.attr._pypto[DefaultInfo].default_runfiles).merge_all(runfiles),
    )
