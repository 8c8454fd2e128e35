"""The repositories of the GCC tool set. They are fetched when a build selects the toolchain, not before."""

load("//toolchains/private:fetch.bzl", "fetch_tool_set", "write_toolchain")
load("//toolchains/private:local.bzl", "find_local")
load("//toolchains/private:schema.bzl", "fields")

_RULE_FILE = Label("//toolchains/gcc:toolchain.bzl")

def _gcc_repository_impl(rctx):
    write_toolchain(
        rctx,
        rule_file = _RULE_FILE,
        rule_name = "gcc_toolchain",
        version = fetch_tool_set(rctx, "gcc"),
    )

gcc_repository = repository_rule(
    implementation = _gcc_repository_impl,
    doc = "A GCC for x86_64 Linux with its binutils, headers and libraries, fetched by pinned version and SHA-256 through the user's own package client.",
)

def _gcc_aarch64_repository_impl(rctx):
    write_toolchain(
        rctx,
        rule_file = _RULE_FILE,
        rule_name = "gcc_toolchain",
        version = fetch_tool_set(rctx, "gcc_aarch64"),
    )

gcc_aarch64_repository = repository_rule(
    implementation = _gcc_aarch64_repository_impl,
    doc = "A GCC on x86_64 Linux that compiles for AArch64, fetched by pinned version and SHA-256 through the user's own package client.",
)

def _gcc_local_repository_impl(rctx):
    find_local(
        rctx,
        rule_file = _RULE_FILE,
        rule_name = "gcc_toolchain",
        tool_set = "gcc",
    )

gcc_local_repository = repository_rule(
    implementation = _gcc_local_repository_impl,
    attrs = fields("path"),
    configure = True,
    doc = "GCC as it is installed on this machine.",
    environ = ["PATH"],
)
