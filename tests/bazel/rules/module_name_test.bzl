"""Tests of `module_of`: which name and which folder a kernel's source is imported by."""

load("@bazel_skylib//lib:partial.bzl", "partial")
load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//rules/private:actions.bzl", "repository_root")
load("//rules/private:module_name.bzl", "module_of")

_SOURCE = struct(path = "kernels/decode.py", short_path = "kernels/decode.py")
_GENERATED = struct(path = "bazel-out/k8-fastbuild/bin/kernels/decode.py", short_path = "kernels/decode.py")
_EXTERNAL = struct(path = "external/other+/lib/decode.py", short_path = "../other+/lib/decode.py")
_NESTED = struct(path = "python/acme/kernels/decode.py", short_path = "python/acme/kernels/decode.py")

def _repository_root_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, ".", repository_root(_SOURCE))
    asserts.equals(env, "bazel-out/k8-fastbuild/bin", repository_root(_GENERATED))
    asserts.equals(env, "external/other+", repository_root(_EXTERNAL))
    return unittest.end(env)

def _path_gives_the_name_test_impl(ctx):
    env = unittest.begin(ctx)
    for file, name in [
        (_SOURCE, "kernels.decode"),
        (_GENERATED, "kernels.decode"),
        (_EXTERNAL, "lib.decode"),
        (_NESTED, "python.acme.kernels.decode"),
    ]:
        asserts.equals(env, struct(import_roots = [], name = name), module_of(file, ""))
    return unittest.end(env)

def _requested_name_moves_the_root_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, struct(import_roots = ["python"], name = "acme.kernels.decode"), module_of(_NESTED, "acme.kernels.decode"))
    asserts.equals(env, struct(import_roots = ["kernels"], name = "decode"), module_of(_SOURCE, "decode"))
    asserts.equals(env, struct(import_roots = ["."], name = "kernels.decode"), module_of(_SOURCE, "kernels.decode"))
    asserts.equals(env, struct(import_roots = ["external/other+/lib"], name = "decode"), module_of(_EXTERNAL, "decode"))
    return unittest.end(env)

_repository_root_test = unittest.make(_repository_root_test_impl)
_path_gives_the_name_test = unittest.make(_path_gives_the_name_test_impl)
_requested_name_moves_the_root_test = unittest.make(_requested_name_moves_the_root_test_impl)

def module_name_test_suite(name):
    """Declares the tests of this file.

    Args:
      name: string; prefix of the tests' names and name of the suite.
    """
    unittest.suite(
        name,
        partial.make(_repository_root_test, size = "small"),
        partial.make(_path_gives_the_name_test, size = "small"),
        partial.make(_requested_name_moves_the_root_test, size = "small"),
    )
