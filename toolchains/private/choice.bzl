"""Which tag of which module decides about a tool set. Pure: nothing here reads a host, an environment or a file."""

load("//toolchains/private:schema.bzl", "FIELDS")

KINDS = ["download", "local", "wrap"]

def modules_of(mctx):
    """The modules that use an extension, as plain data.

    Args:
      mctx: the extension's context.

    Returns:
      A list of structs of `name`, `is_root` and `tags` (list of structs of `kind` and `fields`, a dict).
    """
    return [
        struct(
            name = module.name,
            is_root = module.is_root,
            tags = [
                struct(kind = kind, fields = {name: getattr(tag, name) for name in dir(tag) if name in FIELDS})
                for kind in KINDS
                for tag in getattr(module.tags, kind)
            ],
        )
        for module in mctx.modules
    ]

def choose(tool_set, modules, locked_version, fail = fail):
    """The choice about a tool set: the root module decides, other modules may ask for a version.

    Args:
      tool_set: string; the extension's name.
      modules: what `modules_of` returns.
      locked_version: string; the version that a plain `download` takes, empty when nothing can be downloaded by default.
      fail: function; called with the error's text.

    Returns:
      A struct of `kind` (`download`, `local`, `wrap` or `none`), `fields` (dict) and `decided_by` (string).
    """
    root = [module for module in modules if module.is_root]
    own = root[0].tags if root else []
    if len(own) > 1:
        return fail("\n".join([
            "",
            "The root module has {} tags of the extension {}, and one tool set is used:".format(len(own), tool_set),
        ] + ["  {}.{}({})".format(tool_set, tag.kind, _shown(tag.fields)) for tag in own] + [
            "Remove all but one of them from MODULE.bazel.",
        ]))
    for module in modules:
        for tag in module.tags:
            problem = _problem(tool_set, module, tag, bool(own), locked_version)
            if problem:
                return fail("\n" + problem)
    if own:
        return struct(kind = own[0].kind, fields = own[0].fields, decided_by = root[0].name or "the root module")
    if locked_version:
        return struct(kind = "download", fields = {"version": locked_version}, decided_by = "pypto")
    return struct(kind = "none", fields = {}, decided_by = "no module")

def _problem(tool_set, module, tag, root_decides, locked_version):
    call = "{}.{}({})".format(tool_set, tag.kind, _shown(tag.fields))
    if tag.kind == "wrap" and not tag.fields.get("toolchain"):
        return "{} of the module {} names no target: {}.wrap(toolchain = \"//tools:my_{}\")".format(call, module.name, tool_set, tool_set)
    if not module.is_root:
        beyond = tag.kind != "download" or [name for name, value in tag.fields.items() if value and name != "version"]
        if beyond:
            return "\n".join([
                "The module {} says where {} comes from: {}".format(module.name, tool_set, call),
                "Only the root module decides that; other modules may ask for a version: {}.download(version = ...)".format(tool_set),
                "In {}, make it an extension of its own development: use_extension(..., dev_dependency = True)".format(module.name),
            ])
    asked = tag.fields.get("version")
    pinned_elsewhere = tag.fields.get("urls")
    if tag.kind == "download" and not locked_version and module.is_root:
        if not pinned_elsewhere:
            return "{} names no archive: give urls and sha256; it cannot be downloaded otherwise".format(call)
        if len(tag.fields.get("sha256", "")) != 64:
            return "{} pins no SHA-256: give sha256, 64 hexadecimal digits, of the archive".format(call)
    if tag.kind == "download" and asked and locked_version and asked != locked_version and (module.is_root or not root_decides):
        return "\n".join([
            "The module {} needs {} {}, and this pypto downloads {}.".format(module.name, tool_set, asked, locked_version),
            "Use a pypto that locks {}, or decide otherwise in the root module: {}.local(...) or {}.wrap(...)".format(asked, tool_set, tool_set),
        ])
    return None

def _shown(fields):
    return ", ".join(["{} = {}".format(name, repr(str(value) if type(value) == "Label" else value)) for name, value in sorted(fields.items()) if value])
