"""The module extension of the ptoas tool set."""

load("//toolchains/private:extension.bzl", "LINUX_X86_64", "tool_set_extension")
load("//toolchains/private:schema.bzl", "tags")
load("//toolchains/ptoas:repository.bzl", "ptoas_local_repository", "ptoas_repository")

def _ptoas_impl(mctx):
    return tool_set_extension(
        mctx,
        name = "ptoas",
        exec_compatible_with = LINUX_X86_64,
        locked_set = "ptoas",
        repositories = {"download": ptoas_repository, "local": ptoas_local_repository},
    )

ptoas = module_extension(
    implementation = _ptoas_impl,
    doc = """Where ptoas comes from: `download` (pinned, unpacked from its wheel; the default), `local` (an installation of
this machine: `path`, else the environment variable `PTOAS_ROOT`, names its folder), or `wrap` (a target of the user's).

The extension itself reads no host, environment or network. `@ptoas_toolchains` holds one `toolchain()` declaration;
the tree behind it is fetched when a build needs it.""",
    tag_classes = tags(),
)
