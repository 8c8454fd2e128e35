"""The module extension of the GCC tool set."""

load("//toolchains/gcc:repository.bzl", "gcc_repository")
load("//toolchains/private:hub.bzl", "toolchain_hub")
load("//toolchains/private:tags.bzl", "DOWNLOAD_TAG")

def _gcc_impl(mctx):
    gcc_repository(name = "gcc_download")
    toolchain_hub(
        name = "gcc_toolchains",
        exec_compatible_with = ["@platforms//os:linux", "@platforms//cpu:x86_64"],
        toolchain = "@gcc_download//:toolchain",
        toolchain_type = str(Label("//toolchains/gcc:toolchain_type")),
    )
    return mctx.extension_metadata(reproducible = True)

gcc = module_extension(
    implementation = _gcc_impl,
    doc = """Where GCC comes from. The tag `download` takes a pinned GCC, unpacked from Debian packages.

The extension itself reads no host, environment or network. `@gcc_toolchains` holds one `toolchain()` declaration;
the tree behind it is fetched when a build needs it.""",
    tag_classes = {"download": DOWNLOAD_TAG},
)
