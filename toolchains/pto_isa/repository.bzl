"""The repository that holds a downloaded PTO-ISA. It is fetched when a build selects the toolchain, not before."""

load("//toolchains/private:fetch.bzl", "fetch_tool_set", "write_toolchain")

def _pto_isa_repository_impl(rctx):
    write_toolchain(
        rctx,
        rule_file = Label("//toolchains/pto_isa:toolchain.bzl"),
        rule_name = "pto_isa_toolchain",
        version = fetch_tool_set(rctx, "isa"),
    )

pto_isa_repository = repository_rule(
    implementation = _pto_isa_repository_impl,
    doc = "The PTO-ISA headers with the CPU simulator, fetched by pinned version and SHA-256 through the user's own package client.",
)
