"""What every tool set that is one folder of files has in common."""

TOOL_TREE_ATTRS = {
    "evidence": attr.label(
        mandatory = True,
        allow_single_file = [".json"],
        doc = "The record of what was verified at unpacking. Its folder is the root of the tree.",
    ),
    "files": attr.label_list(
        mandatory = True,
        allow_files = True,
        doc = "Every file of the tree. All of them are inputs of the actions that use the tool.",
    ),
    "folder": attr.string(
        doc = "Where the tree lies when it is an installation of the machine: an absolute path. Then the evidence alone is an " +
              "input, and actions are not executed remotely.",
    ),
    "version": attr.string(
        mandatory = True,
        doc = "The version of the lock entry, or what the installation reports; compared with the table of tested versions.",
    ),
}

_TYPES = {"evidence": "File", "files": "depset", "folder": "string", "version": "string"}

def tool_tree_fields(ctx):
    """The fields of the Info providers of such tool sets.

    Args:
      ctx: the context of a rule with `TOOL_TREE_ATTRS`.

    Returns:
      A dict of the provider's fields.
    """
    return {
        "evidence": ctx.file.evidence,
        "files": depset(ctx.files.files, transitive = [depset([ctx.file.evidence])]),
        "folder": ctx.attr.folder,
        "version": ctx.attr.version,
    }

def tool_tree_init(provider_name, fields):
    """Checks the fields of such a provider.

    Args:
      provider_name: string; for messages.
      fields: dict of the fields given.

    Returns:
      The fields, with an empty `folder` when none was given.
    """
    complete = {"folder": ""} | fields
    if sorted(complete) != sorted(_TYPES):
        fail("{} has the fields {}, got {}".format(provider_name, ", ".join(sorted(_TYPES)), ", ".join(sorted(complete))))
    for name, kind in _TYPES.items():
        if type(complete[name]) != kind:
            fail("{}.{} is a {}, got a {}".format(provider_name, name, kind, type(complete[name])))
    if complete["folder"] and not complete["folder"].startswith("/"):
        fail("{}.folder is an absolute path, got '{}'".format(provider_name, complete["folder"]))
    return complete
