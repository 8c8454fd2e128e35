"""The module extension of the GCC tool sets: for the host, and the one that compiles for AArch64."""

load("//toolchains/gcc:repository.bzl", "gcc_aarch64_repository", "gcc_local_repository", "gcc_repository")
load("//toolchains/private:extension.bzl", "LINUX_X86_64", "tool_set_extension")
load("//toolchains/private:hub.bzl", "declaration")
load("//toolchains/private:schema.bzl", "tags")

def _more(_choice):
    gcc_aarch64_repository(name = "gcc_aarch64_download")
    return [declaration(
        name = "aarch64_toolchain",
        exec_compatible_with = LINUX_X86_64,
        target_settings = [str(Label("//rules:is_device")), str(Label("//toolchains:tools_wanted"))],
        toolchain = "@gcc_aarch64_download//:toolchain",
        toolchain_type = str(Label("//toolchains/gcc:aarch64_toolchain_type")),
    )]

def _cc(choice):
    if choice.kind != "download":
        return []
    return [declaration(
        name = "cc_toolchain",
        exec_compatible_with = LINUX_X86_64,
        target_compatible_with = LINUX_X86_64,
        toolchain = "@gcc_download//:cc_toolchain",
        toolchain_type = "@bazel_tools//tools/cpp:toolchain_type",
    )]

def _gcc_impl(mctx):
    return tool_set_extension(
        mctx,
        name = "gcc",
        cc = _cc,
        exec_compatible_with = LINUX_X86_64,
        locked_set = "gcc",
        more = _more,
        repositories = {"download": gcc_repository, "local": gcc_local_repository},
    )

gcc = module_extension(
    implementation = _gcc_impl,
    doc = """Where GCC comes from: `download` (pinned, unpacked from Debian packages; the default), `local` (a g++ of this
machine: `path` is the driver; without it the `g++` on PATH), or `wrap` (a target of the user's).

The extension itself reads no host, environment or network. `@gcc_toolchains` holds `toolchain()` declarations; the
trees behind them are fetched when a build needs them. `register_toolchains("@gcc_toolchains//cc:all")` makes the downloaded
GCC compile C++ for Bazel's own rules, too; nobody gets that without asking.""",
    tag_classes = tags(),
)
