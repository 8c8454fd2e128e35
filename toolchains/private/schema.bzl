"""The attributes of tool sets: one schema for the tags of the extensions and for the repository rules behind them."""

FIELDS = {
    "path": attr.string(
        doc = "Absolute path of the installation. Without it, the one environment variable that the extension names.",
    ),
    "revision": attr.string(
        doc = "The git revision (40 digits) that the checkout must be at, without changes.",
    ),
    "sha256": attr.string(
        doc = "SHA-256 of the archive; an archive without one is an error.",
    ),
    "strip_prefix": attr.string(
        doc = "The folder inside the archive that is the root of the installation.",
    ),
    "toolchain": attr.label(
        doc = "The target that provides the tool set, made with the rule of the tool set's `toolchain.bzl`.",
    ),
    "urls": attr.string_list(
        doc = "Where the archive is; also `file:///...`.",
    ),
    "version": attr.string(
        doc = "The version that is needed. A build that would use another one fails.",
    ),
}

def fields(*names):
    """The attributes of these names.

    Args:
      *names: strings; keys of `FIELDS`.

    Returns:
      A dict for `attrs`.
    """
    return {name: FIELDS[name] for name in names}

def tags(download = ["version"], local = ["path"]):
    """The tag classes of one extension.

    Args:
      download: list of strings; the attributes of its tag `download`.
      local: list of strings; the attributes of its tag `local`.

    Returns:
      A dict for `tag_classes`.
    """
    return {
        "download": tag_class(
            attrs = fields(*download),
            doc = "Takes files that are pinned by SHA-256.",
        ),
        "local": tag_class(
            attrs = fields(*local),
            doc = "Takes an installation of this machine. Only the root module may say so. Its actions are never executed remotely.",
        ),
        "wrap": tag_class(
            attrs = fields("toolchain"),
            doc = "Takes a target of the user's. Only the root module may say so.",
        ),
    }
