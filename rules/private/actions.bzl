"""The actions that build a kernel: each runs one step of `pypto`, so Bazel adds no compile logic of its own."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//rules/private:action_python.bzl", "ActionPythonInfo")

STEP_ATTRS = {
    "_check_sources": attr.label(
        default = Label("//rules/private:check_sources.py"),
        allow_single_file = True,
        cfg = "exec",
        doc = "The program that checks the files of a library.",
    ),
    "_persistent_workers": attr.label(
        default = Label("//rules:persistent_workers"),
        providers = [BuildSettingInfo],
        doc = "Whether the steps run in a persistent worker, and with which protocol.",
    ),
    "_pypto": attr.label(
        default = Label("//pypto"),
        cfg = "exec",
        doc = "The package that the steps are part of.",
    ),
    "_python": attr.label(
        default = Label("//rules/private:action_python"),
        cfg = "exec",
        providers = [ActionPythonInfo],
        doc = "The interpreter that runs the steps.",
    ),
    "_select_pto": attr.label(
        default = Label("//rules/private:select_pto.py"),
        allow_single_file = True,
        cfg = "exec",
        doc = "The program that copies `.pto` files out of a generated directory.",
    ),
    "_step": attr.label(
        default = Label("//rules/private:step.py"),
        allow_single_file = True,
        cfg = "exec",
        doc = "The program that starts a step.",
    ),
    "_verify": attr.label(
        default = Label("//rules/private:verify.py"),
        allow_single_file = True,
        cfg = "exec",
        doc = "The program that checks a bundle.",
    ),
    "_worker": attr.label(
        default = Label("//rules/private:worker.py"),
        allow_single_file = True,
        cfg = "exec",
        doc = "The persistent form of the program that starts a step.",
    ),
}

# Nothing of the caller's environment is inherited. PATH is only for a Python toolchain that looks for its
# interpreter at run time; the tools themselves start with an environment of their own.
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/bin:/bin:/usr/local/bin",
    "TZ": "UTC",
}

# Also for workspaces that leave the network of the sandbox open.
_REQUIREMENTS = {"block-network": "1"}

# For tools that only this machine has; their evidence is an input, so a shared cache never serves another machine's bytes.
_OF_THIS_MACHINE = {"no-remote-exec": "1"}

# Every path of these actions comes from a File, so Bazel may give them others: with --experimental_output_paths=strip, equal
# actions of different configurations are one.
_ANY_OUTPUT_FOLDER = {"supports-path-mapping": "1"}

# Isolated from the environment, without site-packages, no bytecode, UTF-8 whatever the locale is.
_PYTHON_FLAGS = ["-I", "-S", "-B", "-X", "utf8"]

_JOBS = 2

# The compilers of one kernel end at different times. With one CPU asked for, another kernel's fill the gap; what must not
# be exceeded is memory.
def _several_compilers(_os, _inputs):
    return {"cpu": 1, "memory": 300 * _JOBS}

def _folder(file):
    return file.dirname

def repository_root(file):
    """The folder below which a file's path inside its repository begins.

    Args:
      file: File; a source file or a generated one, of the main repository or of another.

    Returns:
      A path relative to the execution root, `.` for the sources of the main repository.
    """
    inside = file.short_path
    if inside.startswith("../"):
        inside = inside.split("/", 2)[2]
    return file.path[:-len(inside)].rstrip("/") or "."

def _import_folder(path):
    """Where an entry of `PyInfo.imports` (`<repository>/<folder>`) is below the execution root."""
    repository, _, folder = path.partition("/")
    root = "" if repository == "_main" else "external/" + repository
    return "/".join([part for part in [root, folder] if part]) or "."

def _run(ctx, step, arguments, mnemonic, message, inputs, outputs, tools = [], toolchain = None, resource_set = None, any_output_folder = True):
    python = ctx.attr._python[ActionPythonInfo]
    start = ctx.actions.args()
    start.add_all(_PYTHON_FLAGS)
    start.add(ctx.file._step)
    what = ctx.actions.args()
    what.add_all(step)

    # A worker takes what to do from the file; the command line is the same without one.
    for words in (what, arguments):
        words.set_param_file_format("multiline")
        words.use_param_file("@%s", use_always = True)
    protocol = ctx.attr._persistent_workers[BuildSettingInfo].value
    requirements = _REQUIREMENTS | (_OF_THIS_MACHINE if [1 for tool in tools if tool.folder] else {})
    if any_output_folder:
        requirements = requirements | _ANY_OUTPUT_FOLDER
    if protocol != "off":
        requirements = requirements | {"requires-worker-protocol": protocol, "supports-workers": "1"}
    ctx.actions.run(
        executable = python.interpreter,
        arguments = [start, what, arguments],
        env = _ENVIRONMENT,
        execution_requirements = requirements,
        inputs = depset(transitive = inputs),
        mnemonic = mnemonic,
        outputs = outputs,
        progress_message = message + " %{label}",
        resource_set = resource_set,
        toolchain = toolchain,

        # As tools they are part of a worker's key: another pypto is another worker.
        tools = [depset(
            [ctx.file._step, ctx.file._worker],
            transitive = [python.files, ctx.attr._pypto[DefaultInfo].default_runfiles.files],
        )],
    )

def _add_folder(arguments, option, tool, prefix = ""):
    if tool.folder:
        arguments.add(option, prefix + tool.folder)
    else:
        # The evidence lies in the root of its tree; only a File lets Bazel say where that is.
        arguments.add_all([tool.evidence], before_each = option, format_each = prefix + "%s", map_each = _folder)

def _add_roots(arguments, tools):
    for name, tool in sorted(tools.items()):
        _add_folder(arguments, "--root", tool, name + "=")

def _roots_are_of_files(import_roots, imports):
    """Whether all folders to import from are found by Files; the others are words, in which Bazel replaces nothing."""
    return not imports and not [root for root in import_roots if root.startswith("bazel-out/")]

def _add_import_roots(ctx, arguments, sources, imports):
    arguments.add_all(sources, before_each = "--import-root", map_each = repository_root, uniquify = True)
    arguments.add_all(imports, before_each = "--import-root", map_each = _import_folder, uniquify = True)
    arguments.add_all(
        imports,
        before_each = "--import-root",
        format_each = ctx.bin_dir.path + "/%s",
        map_each = _import_folder,
        uniquify = True,
    )

def _entry_arguments(ctx, kernel):
    arguments = ctx.actions.args()
    arguments.add("--module", kernel.module)
    arguments.add("--entry", kernel.entry)
    arguments.add("--backend-type", kernel.backend_type)
    arguments.add("--execution-mode", kernel.execution_mode)
    arguments.add_all(kernel.import_roots, before_each = "--import-root")
    _add_import_roots(ctx, arguments, kernel.sources, kernel.imports)
    for name, value in sorted(kernel.tensors.items()):
        arguments.add("--tensor", "{}={}".format(name, value))
    for name, value in sorted(kernel.options.items()):
        arguments.add("--option", "{}={}".format(name, value))
    return arguments

def generate(ctx, kernel, generated, request):
    """Declares the action that turns a kernel's source into its generated directory.

    Args:
      ctx: context of a rule with `STEP_ATTRS`.
      kernel: struct; what is compiled, and for what: `sources` (depset of File: the kernel's module and every module it may
        import), `native_sources` (depset of File: hand-written C++ that it may call), `imports` (depset of string:
        `PyInfo.imports` of the dependencies), `import_roots` (list of string: folders to import from before all others),
        `module`, `entry`, `backend_type` and `execution_mode` (strings), `tensors` and `options` (dicts of string).
      generated: File; the directory to write.
      request: File; the request record to write.
    """
    arguments = _entry_arguments(ctx, kernel)
    arguments.add_all([generated], before_each = "--out", expand_directories = False)
    arguments.add("--request", request)
    _run(
        ctx,
        step = ["pypto.build", "generate"],
        any_output_folder = _roots_are_of_files(kernel.import_roots, kernel.imports),
        arguments = arguments,
        inputs = [kernel.sources, kernel.native_sources],
        message = "Generating kernel",
        mnemonic = "PyptoGenerate",
        outputs = [generated, request],
    )

def dump_ir(ctx, kernel, program, parsed, lowered):
    """Declares the action that prints a kernel's IR.

    Args:
      ctx: context of an aspect with `STEP_ATTRS`.
      kernel: struct; as in `generate`.
      program: File; the program that prints it.
      parsed: File; the IR as it is parsed.
      lowered: File; the IR after all passes.
    """
    arguments = _entry_arguments(ctx, kernel)
    arguments.add("--parsed", parsed)
    arguments.add("--lowered", lowered)
    _run(
        ctx,
        step = [program],
        any_output_folder = _roots_are_of_files(kernel.import_roots, kernel.imports),
        arguments = arguments,
        inputs = [kernel.sources, kernel.native_sources, depset([program])],
        message = "Printing the IR of",
        mnemonic = "PyptoIr",
        outputs = [parsed, lowered],
    )

def check_sources(ctx, own, sources, imports, checked, import_roots = []):
    """Declares the action that checks the files of a library: each must be importable with what a build offers.

    Args:
      ctx: context of a rule with `STEP_ATTRS`.
      own: list of File; the files to check.
      sources: depset of File; they and every module they may import.
      imports: depset of string; `PyInfo.imports` of the library.
      checked: File; written when all is well.
      import_roots: list of string; folders to import from before all others.
    """
    arguments = ctx.actions.args()
    arguments.add_all(import_roots, before_each = "--import-root")
    _add_import_roots(ctx, arguments, sources, imports)
    arguments.add("--out", checked)
    arguments.add_all(own)
    _run(
        ctx,
        step = [ctx.file._check_sources],
        any_output_folder = _roots_are_of_files(import_roots, imports),
        arguments = arguments,
        inputs = [sources, depset([ctx.file._check_sources])],
        message = "Checking kernel sources",
        mnemonic = "PyptoCheckSources",
        outputs = [checked],
    )

def verify(ctx, bundle, verified):
    """Declares the action that checks every byte of a bundle against its manifests.

    Args:
      ctx: context of a rule with `STEP_ATTRS`.
      bundle: File; the bundle directory.
      verified: File; written when all is well: the bundle's digest.
    """
    arguments = ctx.actions.args()
    arguments.add_all([bundle], expand_directories = False)
    arguments.add("--out", verified)
    _run(
        ctx,
        step = [ctx.file._verify],
        arguments = arguments,
        inputs = [depset([bundle, ctx.file._verify])],
        message = "Verifying bundle",
        mnemonic = "PyptoVerify",
        outputs = [verified],
    )

def select_pto(ctx, generated, pto):
    """Declares the action that copies the `.pto` files out of a generated directory.

    Args:
      ctx: context of a rule with `STEP_ATTRS`.
      generated: File; the generated directory.
      pto: File; the directory to write.
    """
    arguments = ctx.actions.args()
    arguments.add_all([generated, pto], expand_directories = False)
    _run(
        ctx,
        step = [ctx.file._select_pto],
        arguments = arguments,
        inputs = [depset([generated, ctx.file._select_pto])],
        message = "Selecting .pto files of",
        mnemonic = "PyptoSelect",
        outputs = [pto],
    )

def describe(ctx, tools, settings, descriptor):
    """Declares the action that writes the toolchain descriptor of a set of tools.

    Args:
      ctx: context of a rule with `STEP_ATTRS`.
      tools: dict of name to Info; what `select_tools` returns.
      settings: struct; the identity settings, see `identity_settings`.
      descriptor: File; the descriptor to write.
    """
    arguments = ctx.actions.args()
    for name, tool in sorted(tools.items()):
        if name == "cann":
            _add_folder(arguments, "--cann", tool)
        else:
            # Its own record describes it, wherever it lies.
            arguments.add_all([tool.evidence], before_each = "--" + name, map_each = _folder)
    arguments.add("--out", descriptor)
    arguments.add("--cache-identity", settings.policy)
    arguments.add("--cache-strict", "1" if settings.strict else "0")
    inputs = [depset([tool.evidence for tool in tools.values()])]
    if "cann" in tools:
        inputs.append(tools["cann"].files)
    if settings.reads_content:
        inputs = [tool.files for tool in tools.values()]
    _run(
        ctx,
        step = ["pypto.toolchain", "describe"],
        arguments = arguments,
        inputs = inputs,
        message = "Describing the tools of",
        mnemonic = "PyptoDescribe",
        outputs = [descriptor],
        tools = tools.values(),
    )

def assemble(ctx, tools, generated, descriptor, assembled, toolchain):
    """Declares the action that turns the `.pto` of each kernel into C++.

    Args:
      ctx: context of a rule with `STEP_ATTRS`.
      tools: dict of name to Info; what `select_tools` returns.
      generated: File; the generated directory.
      descriptor: File; the toolchain descriptor.
      assembled: File; the directory to write.
      toolchain: Label; the toolchain type of the tool that runs.
    """
    arguments = ctx.actions.args()
    arguments.add_all([generated], before_each = "--generated", expand_directories = False)
    arguments.add("--descriptor", descriptor)
    _add_roots(arguments, {"ptoas": tools["ptoas"]})
    arguments.add_all([assembled], before_each = "--out", expand_directories = False)
    arguments.add("--jobs", _JOBS)
    _run(
        ctx,
        step = ["pypto.build", "assemble"],
        arguments = arguments,
        inputs = [depset([generated, descriptor]), tools["ptoas"].files],
        message = "Assembling kernel",
        mnemonic = "PyptoAssemble",
        outputs = [assembled],
        tools = [tools["ptoas"]],
        toolchain = toolchain,
    )

def compile_kernel(ctx, tools, generated, assembled, descriptor, ready, toolchain):
    """Declares the action that compiles the kernels and the orchestration.

    Args:
      ctx: context of a rule with `STEP_ATTRS`.
      tools: dict of name to Info; what `select_tools` returns.
      generated: File; the generated directory.
      assembled: File; what the assemble step wrote.
      descriptor: File; the toolchain descriptor.
      ready: File; the READY directory to write.
      toolchain: Label; the toolchain type of the tool that runs.
    """
    arguments = ctx.actions.args()
    arguments.add_all([generated], before_each = "--generated", expand_directories = False)
    arguments.add_all([assembled], before_each = "--assembled", expand_directories = False)
    arguments.add("--descriptor", descriptor)
    compilers = {name: tool for name, tool in tools.items() if name != "ptoas"}
    _add_roots(arguments, compilers)
    arguments.add_all([ready], before_each = "--out", expand_directories = False)
    arguments.add("--jobs", _JOBS)
    _run(
        ctx,
        step = ["pypto.build", "compile"],
        arguments = arguments,
        inputs = [depset([generated, assembled, descriptor])] + [tool.files for tool in compilers.values()],
        message = "Compiling kernel",
        mnemonic = "PyptoCompile",
        outputs = [ready],
        resource_set = _several_compilers,
        tools = compilers.values(),
        toolchain = toolchain,
    )

def seal(ctx, kernels, descriptor, settings, bundle, digest):
    """Declares the action that packs compiled kernels into a bundle.

    Args:
      ctx: context of a rule with `STEP_ATTRS`.
      kernels: list of structs of `request`, `generated` and `ready` (Files), one per specialization.
      descriptor: File; the toolchain descriptor.
      settings: struct; the identity settings, see `identity_settings`.
      bundle: File; the directory to write.
      digest: File; the bundle's digest, written as text.
    """
    arguments = ctx.actions.args()
    inputs = [descriptor]
    for kernel in kernels:
        arguments.add("--request", kernel.request)
        arguments.add_all([kernel.generated], before_each = "--generated", expand_directories = False)
        arguments.add_all([kernel.ready], before_each = "--ready", expand_directories = False)
        inputs.extend([kernel.request, kernel.generated, kernel.ready])
    arguments.add("--descriptor", descriptor)
    arguments.add_all([bundle], before_each = "--out", expand_directories = False)
    arguments.add("--digest", digest)
    arguments.add("--cache-identity", settings.policy)
    arguments.add("--cache-strict", "1" if settings.strict else "0")
    if settings.epoch:
        arguments.add("--cache-epoch", settings.epoch)
    _run(
        ctx,
        step = ["pypto.build", "seal"],
        arguments = arguments,
        inputs = [depset(inputs)],
        message = "Sealing bundle",
        mnemonic = "PyptoSeal",
        outputs = [bundle, digest],
    )
