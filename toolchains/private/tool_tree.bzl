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
    "version": attr.string(
        mandatory = True,
        doc = "The version of the lock entry, shown in messages.",
    ),
}

def tool_tree_fields(ctx):
    """The fields that the Info providers of such tool sets share.

    Args:
      ctx: the context of a rule with `TOOL_TREE_ATTRS`.

    Returns:
      A struct of `evidence` (File), `files` (depset of File) and `version` (string).
    """
    return struct(
        evidence = ctx.file.evidence,
        files = depset(ctx.files.files, transitive = [depset([ctx.file.evidence])]),
        version = ctx.attr.version,
    )
