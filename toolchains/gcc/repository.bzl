"""The repository that holds a downloaded GCC. It is fetched when a build selects the toolchain, not before."""

load("//toolchains/private:fetch.bzl", "fetch_tool_set", "write_toolchain")

def _gcc_repository_impl(rctx):
    write_toolchain(
        rctx,
        rule_file = Label("//toolchains/gcc:toolchain.bzl"),
        rule_name = "gcc_toolchain",
        version = fetch_tool_set(rctx, "gcc"),
    )

gcc_repository = repository_rule(
    implementation = _gcc_repository_impl,
    doc = "A GCC for x86_64 Linux with its binutils, headers and libraries, fetched by pinned version and SHA-256 through the user's own package client.",
)
