"""Tests of who decides about a tool set, and of the table of tested versions."""

load("@bazel_skylib//lib:partial.bzl", "partial")
load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//toolchains/private:choice.bzl", "choose", "modules_of")
load("//toolchains/private:compatibility.bzl", "incompatibility")

def _tag(kind, **fields):
    return struct(kind = kind, fields = fields)

def _module(name, *tags, is_root = False):
    return struct(name = name, is_root = is_root, tags = tags)

_PYPTO = _module("pypto", _tag("download", version = ""))

def _choose(modules, tool_set = "gcc", locked = "12.2"):
    """The choice, or the text of the failure."""
    return choose(tool_set, modules, locked, fail = lambda text: text)

def _root_decides_test_impl(ctx):
    env = unittest.begin(ctx)
    choice = _choose([_module("acme", _tag("local", path = "/opt/gcc"), is_root = True), _PYPTO])
    asserts.equals(env, struct(decided_by = "acme", fields = {"path": "/opt/gcc"}, kind = "local"), choice)

    # With the root's own decision, a version that another module asks for does not count.
    other = _module("lib", _tag("download", version = "11"))
    asserts.equals(env, choice, _choose([_module("acme", _tag("local", path = "/opt/gcc"), is_root = True), other, _PYPTO]))
    return unittest.end(env)

def _default_test_impl(ctx):
    env = unittest.begin(ctx)
    downloaded = struct(decided_by = "pypto", fields = {"version": "12.2"}, kind = "download")
    asserts.equals(env, downloaded, _choose([_module("acme", is_root = True), _PYPTO]))
    asserts.equals(env, downloaded, _choose([_module("acme", is_root = True), _module("lib", _tag("download", version = "12.2"))]))
    asserts.equals(env, "none", _choose([_module("acme", is_root = True)], tool_set = "cann", locked = "").kind)
    return unittest.end(env)

def _refused_test_impl(ctx):
    env = unittest.begin(ctx)
    root = _module("acme", is_root = True)
    two = _module("acme", _tag("local", path = "/a"), _tag("wrap", toolchain = "//b"), is_root = True)
    archive = _tag("download", sha256 = "", urls = ["file:///cann.tar"], version = "")
    for modules, tool_set, locked, parts in [
        ([two], "gcc", "12.2", ["2 tags of the extension gcc", "gcc.local(path = \"/a\")", "Remove all but one"]),
        ([root, _module("lib", _tag("local", path = "/a"))], "gcc", "12.2", ["The module lib says where gcc comes from", "dev_dependency = True"]),
        ([root, _module("lib", _tag("wrap", toolchain = "//b"))], "gcc", "12.2", ["Only the root module decides that"]),
        ([root, _module("lib", _tag("download", version = "11"))], "gcc", "12.2", ["The module lib needs gcc 11, and this pypto downloads 12.2", "gcc.local(...)"]),
        ([_module("acme", _tag("download", version = "11"), is_root = True)], "gcc", "12.2", ["The module acme needs gcc 11"]),
        ([_module("acme", _tag("wrap", toolchain = None), is_root = True)], "gcc", "12.2", ["names no target"]),
        ([_module("acme", _tag("download", urls = [], sha256 = ""), is_root = True)], "cann", "", ["names no archive: give urls and sha256"]),
        ([_module("acme", archive, is_root = True)], "cann", "", ["pins no SHA-256"]),
        ([root, _module("lib", archive)], "cann", "", ["The module lib says where cann comes from"]),
    ]:
        message = _choose(modules, tool_set = tool_set, locked = locked)
        for part in parts:
            asserts.true(env, type(message) == "string" and part in message, "{} lacks {}".format(message, part))
    return unittest.end(env)

def _modules_test_impl(ctx):
    env = unittest.begin(ctx)
    tags = struct(download = [struct(version = "1")], local = [], wrap = [struct(toolchain = "//b")])
    asserts.equals(
        env,
        [struct(is_root = True, name = "acme", tags = [_tag("download", version = "1"), _tag("wrap", toolchain = "//b")])],
        modules_of(struct(modules = [struct(name = "acme", is_root = True, tags = tags)])),
    )
    return unittest.end(env)

def _versions_test_impl(ctx):
    env = unittest.begin(ctx)
    rows = [
        struct(ptoas = "0.1", pto_isa = "3", gcc = ["12", "13"]),
        struct(ptoas = "0.2", pto_isa = "4", gcc = ["13"]),
    ]
    asserts.equals(env, None, incompatibility(gcc = "12.2.0-14", isa = "3", ptoas = "0.1.7", rows = rows))
    asserts.equals(env, None, incompatibility(gcc = "13", isa = "4.1", ptoas = "0.2", rows = rows))

    # "0.10" is not a kind of "0.1"; the nearest row is named.
    problem = incompatibility(gcc = "13.1", isa = "3", ptoas = "0.10", rows = rows)
    asserts.equals(env, struct(found = "ptoas 0.10, PTO-ISA 3, GCC 13.1", row = "ptoas 0.1, PTO-ISA 3, GCC 12 or 13"), problem)
    asserts.equals(env, "ptoas 0.2, PTO-ISA 4, GCC 13", incompatibility(gcc = "11", isa = "4", ptoas = "0.2", rows = rows).row)
    return unittest.end(env)

_default_test = unittest.make(_default_test_impl)
_modules_test = unittest.make(_modules_test_impl)
_refused_test = unittest.make(_refused_test_impl)
_root_decides_test = unittest.make(_root_decides_test_impl)
_versions_test = unittest.make(_versions_test_impl)

def choice_test_suite(name):
    """Declares the tests of this file.

    Args:
      name: string; prefix of the tests' names and name of the suite.
    """
    unittest.suite(
        name,
        partial.make(_default_test, size = "small"),
        partial.make(_modules_test, size = "small"),
        partial.make(_refused_test, size = "small"),
        partial.make(_root_decides_test, size = "small"),
        partial.make(_versions_test, size = "small"),
    )
