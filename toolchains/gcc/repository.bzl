"""The repositories of the GCC tool set. They are fetched when a build selects the toolchain, not before."""

load("//toolchains/private:fetch.bzl", "fetch_tool_set", "write_toolchain")
load("//toolchains/private:local.bzl", "find_local")
load("//toolchains/private:schema.bzl", "fields")

_FETCH = Label("//toolchains/gcc:fetch.py")
_LOCK_OF_EXTRA = Label("//toolchains/gcc:extra.json")
_RULE_FILE = Label("//toolchains/gcc:toolchain.bzl")

# For Bazel's own C++ rules; the registration is in the package `cc` of the hub.
_CC_TOOLCHAIN = """
load("@rules_cc//cc/toolchains:cc_toolchain.bzl", "cc_toolchain")
load({config_file}, "gcc_cc_toolchain_config")

filegroup(
    name = "all_files",
    srcs = glob(["root/**", "extra/**"]),
)

gcc_cc_toolchain_config(
    name = "cc_toolchain_config",
    assembler = {assembler},
    driver = {driver},
    includes = {includes},
    libraries = {libraries},
    linker = {linker},
)

cc_toolchain(
    name = "cc_toolchain",
    all_files = ":all_files",
    ar_files = ":all_files",
    as_files = ":all_files",
    compiler_files = ":all_files",
    dwp_files = ":all_files",
    linker_files = ":all_files",
    objcopy_files = ":all_files",
    strip_files = ":all_files",
    toolchain_config = ":cc_toolchain_config",
    visibility = ["//visibility:public"],
)
"""

def _gcc_repository_impl(rctx):
    rctx.watch(_LOCK_OF_EXTRA)
    version = fetch_tool_set(
        rctx,
        "gcc",
        arguments = ["-B", str(rctx.path(_FETCH)), "root", "extra"],
    )
    record = json.decode(rctx.read("root/set.json"))
    write_toolchain(
        rctx,
        more = _CC_TOOLCHAIN.format(
            assembler = repr(record["tools"]["as"]["path"]),
            config_file = repr(str(Label("//toolchains/gcc:cc_toolchain_config.bzl"))),
            driver = repr(record["tools"]["g++"]["path"]),
            includes = repr(record["includes"]),
            libraries = repr(record["libraries"]),
            linker = repr(record["tools"]["ld"]["path"]),
        ),
        rule_file = _RULE_FILE,
        rule_name = "gcc_toolchain",
        version = version,
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
