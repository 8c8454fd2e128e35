"""The flags that say which evidence a key rests on."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")

IDENTITY_ATTRS = {
    "_cache_epoch": attr.label(
        default = Label("//rules:cache_epoch"),
        providers = [BuildSettingInfo],
        doc = "A separate set of keys.",
    ),
    "_cache_identity": attr.label(
        default = Label("//rules:cache_identity"),
        providers = [BuildSettingInfo],
        doc = "The identity policy.",
    ),
    "_cache_strict": attr.label(
        default = Label("//rules:cache_strict"),
        providers = [BuildSettingInfo],
        doc = "Whether the policy `build` reads the bytes of tools, too.",
    ),
}

def identity_settings(ctx):
    """The settings in force.

    Args:
      ctx: context of a rule with `IDENTITY_ATTRS`.

    Returns:
      A struct of `policy` (string), `strict` (bool), `epoch` (string, may be empty) and `reads_content` (bool).
    """
    policy = ctx.attr._cache_identity[BuildSettingInfo].value
    strict = ctx.attr._cache_strict[BuildSettingInfo].value
    return struct(
        epoch = ctx.attr._cache_epoch[BuildSettingInfo].value,
        policy = policy,
        reads_content = strict or policy == "content",
        strict = strict,
    )
