"""The module extension of the ptoas tool set."""

load("//toolchains/private:hub.bzl", "toolchain_hub")
load("//toolchains/private:tags.bzl", "DOWNLOAD_TAG")
load("//toolchains/ptoas:repository.bzl", "ptoas_repository")

def _ptoas_impl(mctx):
    ptoas_repository(name = "ptoas_download")
    toolchain_hub(
        name = "ptoas_toolchains",
        exec_compatible_with = ["@platforms//os:linux", "@platforms//cpu:x86_64"],
        toolchain = "@ptoas_download//:toolchain",
        toolchain_type = str(Label("//toolchains/ptoas:toolchain_type")),
    )
    return mctx.extension_metadata(reproducible = True)

ptoas = module_extension(
    implementation = _ptoas_impl,
    doc = """Where ptoas comes from. The tag `download` takes a pinned ptoas, unpacked from its wheel.

The extension itself reads no host, environment or network. `@ptoas_toolchains` holds one `toolchain()` declaration;
the tree behind it is fetched when a build needs it.""",
    tag_classes = {"download": DOWNLOAD_TAG},
)
