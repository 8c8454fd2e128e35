"""The repositories of the PTO-ISA tool set. They are fetched when a build selects the toolchain, not before."""

load("//toolchains/private:fetch.bzl", "fetch_tool_set", "write_toolchain")
load("//toolchains/private:local.bzl", "find_local")
load("//toolchains/private:schema.bzl", "fields")

_RULE_FILE = Label("//toolchains/pto_isa:toolchain.bzl")

def _pto_isa_repository_impl(rctx):
    write_toolchain(
        rctx,
        rule_file = _RULE_FILE,
        rule_name = "pto_isa_toolchain",
        version = fetch_tool_set(rctx, "isa"),
    )

pto_isa_repository = repository_rule(
    implementation = _pto_isa_repository_impl,
    doc = "The PTO-ISA headers with the CPU simulator, fetched by pinned version and SHA-256 through the user's own package client.",
)

def _pto_isa_local_repository_impl(rctx):
    find_local(
        rctx,
        rule_file = _RULE_FILE,
        rule_name = "pto_isa_toolchain",
        tool_set = "isa",
        variable = "PTO_ISA_ROOT",
    )

pto_isa_local_repository = repository_rule(
    implementation = _pto_isa_local_repository_impl,
    attrs = fields("path", "revision"),
    configure = True,
    doc = "PTO-ISA as it is installed on this machine.",
    environ = ["PTO_ISA_ROOT"],
)
