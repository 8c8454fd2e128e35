"""What the extensions of the tool sets have in common."""

load("//toolchains/private:choice.bzl", "choose", "modules_of")
load("//toolchains/private:hub.bzl", "declaration", "toolchain_hub")

LINUX_X86_64 = ["@platforms//os:linux", "@platforms//cpu:x86_64"]
_LOCK = Label("//pypto:toolchain/lock.json")
_WANTED = str(Label("//toolchains:tools_wanted"))
_IS_DEVICE = str(Label("//rules:is_device"))

def tool_set_extension(mctx, name, locked_set, repositories, exec_compatible_with, more = None, cc = None):
    """Makes the repositories of one tool set.

    Args:
      mctx: the extension's context.
      name: string; the tool set's folder and the extension's name.
      locked_set: string; its name in pypto's lock file, empty when nothing is locked.
      repositories: dict of `download` and `local` to repository rules.
      exec_compatible_with: list of strings; constraints of the machine that runs what is downloaded.
      more: function of the choice; returns a list of further declarations for the hub.
      cc: function of the choice; returns a list of declarations for the hub's package `cc`.

    Returns:
      The extension's metadata.
    """
    locked = json.decode(mctx.read(_LOCK))["sets"][locked_set]["version"] if locked_set else ""
    choice = choose(name, modules_of(mctx), locked)
    implementation = None
    if choice.kind == "wrap":
        implementation = str(choice.fields["toolchain"])
    elif choice.kind != "none":
        repository = "{}_{}".format(name, choice.kind)
        repositories[choice.kind](
            name = repository,
            **{key: value for key, value in choice.fields.items() if value and not (key == "version" and locked_set)}
        )
        implementation = "@{}//:toolchain".format(repository)
    declarations = more(choice) if more else []
    if implementation:
        declarations.append(declaration(
            name = "toolchain",
            exec_compatible_with = exec_compatible_with if choice.kind == "download" else [],
            # For the device nothing may be fetched before the rule has said that there is no CANN.
            target_settings = [_WANTED if locked_set else _IS_DEVICE],
            toolchain = implementation,
            toolchain_type = str(Label("//toolchains/{}:toolchain_type".format(name))),
        ))
    toolchain_hub(
        name = name + "_toolchains",
        cc_declarations = cc(choice) if cc else [],
        choice = json.encode({
            "decided_by": choice.decided_by,
            "fields": {key: str(value) if type(value) == "Label" else value for key, value in choice.fields.items() if value},
            "kind": choice.kind,
            "locked": locked,
            "tool_set": name,
        }),
        declarations = declarations,
    )
    return mctx.extension_metadata(reproducible = True)
