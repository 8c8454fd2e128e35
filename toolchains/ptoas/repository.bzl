"""The repositories of the ptoas tool set. They are fetched when a build selects the toolchain, not before."""

load("//toolchains/private:fetch.bzl", "fetch_tool_set", "write_toolchain")
load("//toolchains/private:local.bzl", "find_local")
load("//toolchains/private:schema.bzl", "fields")

_RULE_FILE = Label("//toolchains/ptoas:toolchain.bzl")

def _ptoas_repository_impl(rctx):
    write_toolchain(
        rctx,
        rule_file = _RULE_FILE,
        rule_name = "ptoas_toolchain",
        version = fetch_tool_set(rctx, "ptoas"),
    )

ptoas_repository = repository_rule(
    implementation = _ptoas_repository_impl,
    doc = "The assembler ptoas with its libraries, fetched by pinned version and SHA-256 through the user's own package client.",
)

def _ptoas_local_repository_impl(rctx):
    find_local(
        rctx,
        rule_file = _RULE_FILE,
        rule_name = "ptoas_toolchain",
        tool_set = "ptoas",
        variable = "PTOAS_ROOT",
    )

ptoas_local_repository = repository_rule(
    implementation = _ptoas_local_repository_impl,
    attrs = fields("path"),
    configure = True,
    doc = "ptoas as it is installed on this machine.",
    environ = ["PTOAS_ROOT"],
)
