"""The module extension of the PTO-ISA tool set."""

load("//toolchains/private:extension.bzl", "tool_set_extension")
load("//toolchains/private:schema.bzl", "tags")
load("//toolchains/pto_isa:repository.bzl", "pto_isa_local_repository", "pto_isa_repository")

def _pto_isa_impl(mctx):
    return tool_set_extension(
        mctx,
        name = "pto_isa",
        exec_compatible_with = [],
        locked_set = "isa",
        repositories = {"download": pto_isa_repository, "local": pto_isa_local_repository},
    )

pto_isa = module_extension(
    implementation = _pto_isa_impl,
    doc = """Where PTO-ISA comes from: `download` (pinned headers, unpacked from a wheel; the default), `local` (a git
checkout of this machine: `path`, else the environment variable `PTO_ISA_ROOT`, names it, and `revision` what it must be at),
or `wrap` (a target of the user's).

The extension itself reads no host, environment or network. `@pto_isa_toolchains` holds one `toolchain()` declaration;
the tree behind it is fetched when a build needs it.""",
    tag_classes = tags(local = ["path", "revision"]),
)
