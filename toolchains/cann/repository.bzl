"""The repositories of the CANN tool set. They are fetched when a build for the device selects the toolchain."""

load("//toolchains/private:fetch.bzl", "run_python", "write_toolchain")
load("//toolchains/private:local.bzl", "find_local")
load("//toolchains/private:schema.bzl", "fields")

_RULE_FILE = Label("//toolchains/cann:toolchain.bzl")
_PROBE = Label("//toolchains/probe:probe.py")

def _cann_repository_impl(rctx):
    rctx.download_and_extract(
        url = rctx.attr.urls,
        output = "root",
        sha256 = rctx.attr.sha256,
        stripPrefix = rctx.attr.strip_prefix,
    )
    found = json.decode(run_python(
        rctx,
        what = "the tool set 'cann' from {}".format(", ".join(rctx.attr.urls)),
        arguments = ["-B", str(rctx.path(_PROBE)), "cann", "--into", "root", "--path=" + str(rctx.path("root"))],
        quiet = True,
    ))
    wanted = rctx.attr.version
    if wanted and wanted != found["version"]:
        fail("\n{} holds CANN {}, and MODULE.bazel asks for {}".format(", ".join(rctx.attr.urls), found["version"], wanted))
    write_toolchain(rctx, _RULE_FILE, "cann_toolchain", version = found["version"])

cann_repository = repository_rule(
    implementation = _cann_repository_impl,
    attrs = fields("sha256", "strip_prefix", "urls", "version"),
    doc = "A CANN toolkit from an archive of the user's, by SHA-256.",
)

def _cann_local_repository_impl(rctx):
    find_local(
        rctx,
        rule_file = _RULE_FILE,
        rule_name = "cann_toolchain",
        tool_set = "cann",
        variable = "ASCEND_HOME_PATH",
    )

cann_local_repository = repository_rule(
    implementation = _cann_local_repository_impl,
    attrs = fields("path"),
    configure = True,
    doc = "CANN as it is installed on this machine.",
    environ = ["ASCEND_HOME_PATH"],
)
