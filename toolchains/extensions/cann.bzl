"""The module extension of the CANN tool set."""

load("//toolchains/cann:repository.bzl", "cann_local_repository", "cann_repository")
load("//toolchains/private:extension.bzl", "tool_set_extension")
load("//toolchains/private:schema.bzl", "tags")

def _cann_impl(mctx):
    return tool_set_extension(
        mctx,
        name = "cann",
        exec_compatible_with = [],
        locked_set = "",
        repositories = {"download": cann_repository, "local": cann_local_repository},
    )

cann = module_extension(
    implementation = _cann_impl,
    doc = """Where CANN comes from. It is proprietary, so without a tag there is none: `local` (a toolkit of this machine:
`path`, else the environment variable `ASCEND_HOME_PATH`, names its folder), `download` (an archive of the user's, by
`urls` and `sha256`), or `wrap` (a target of the user's).

The extension itself reads no host, environment or network. `@cann_toolchains` holds the `toolchain()` declaration, if any;
the tree behind it is fetched when a build for the device needs it.""",
    tag_classes = tags(download = ["sha256", "strip_prefix", "urls", "version"]),
)
