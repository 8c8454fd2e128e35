"""The module extension of the PTO-ISA tool set."""

load("//toolchains/private:hub.bzl", "toolchain_hub")
load("//toolchains/private:tags.bzl", "DOWNLOAD_TAG")
load("//toolchains/pto_isa:repository.bzl", "pto_isa_repository")

def _pto_isa_impl(mctx):
    pto_isa_repository(name = "pto_isa_download")
    toolchain_hub(
        name = "pto_isa_toolchains",
        exec_compatible_with = [],
        toolchain = "@pto_isa_download//:toolchain",
        toolchain_type = str(Label("//toolchains/pto_isa:toolchain_type")),
    )
    return mctx.extension_metadata(reproducible = True)

pto_isa = module_extension(
    implementation = _pto_isa_impl,
    doc = """Where PTO-ISA comes from. The tag `download` takes pinned PTO-ISA headers, unpacked from a wheel.

The extension itself reads no host, environment or network. `@pto_isa_toolchains` holds one `toolchain()` declaration;
the tree behind it is fetched when a build needs it.""",
    tag_classes = {"download": DOWNLOAD_TAG},
)
