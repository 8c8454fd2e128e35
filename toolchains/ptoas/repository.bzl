"""The repository that holds a downloaded ptoas. It is fetched when a build selects the toolchain, not before."""

load("//toolchains/private:fetch.bzl", "fetch_tool_set", "write_toolchain")

def _ptoas_repository_impl(rctx):
    write_toolchain(
        rctx,
        rule_file = Label("//toolchains/ptoas:toolchain.bzl"),
        rule_name = "ptoas_toolchain",
        version = fetch_tool_set(rctx, "ptoas"),
    )

ptoas_repository = repository_rule(
    implementation = _ptoas_repository_impl,
    doc = "The assembler ptoas with its libraries, fetched by pinned version and SHA-256 through the user's own package client.",
)
