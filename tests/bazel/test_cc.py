"""Bazel's own C, C++ and Python rules with the downloaded GCC: no compiler of the machine is needed. Issue 6."""

from __future__ import annotations

import json

import pytest
from workspaces import Workspace, hidden_compilers

from pypto.toolchain import elf


def test_c_and_cpp_and_py_test_without_a_compiler(checkout: Workspace) -> None:
    """Libraries, tests and programs in C and C++, and a shared object and a program that Python tests use.

    Every compiler is the downloaded one, those of the machine are hidden, and what is made needs the C library alone.
    """
    checkout.run("test", *hidden_compilers(), "//tests/bazel/cc:all").succeeded()
    listed = checkout.run(
        "aquery", "--output=jsonproto", "mnemonic('Cpp(Compile|Link|Archive)', //tests/bazel/cc:all)", stdout_only=True
    ).succeeded()
    actions = json.loads(listed.output)["actions"]
    assert {"CppArchive", "CppCompile", "CppLink"} <= {action["mnemonic"] for action in actions}
    for action in actions:
        assert action["arguments"][0].startswith("external/") and "gcc_download" in action["arguments"][0]
        assert not [word for word in action["arguments"] if word.startswith(("/", "-I/", "-L/"))]
    for name in ("count", "libwords_shared.so"):
        made = checkout.output(f"tests/bazel/cc/{name}").read_bytes()
        assert set(elf.needed(made)) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
        assert elf.build_id(made)


@pytest.mark.long
def test_everything_without_a_compiler(checkout: Workspace) -> None:
    """`test //...` where the sandbox hides the machine's compilers and headers."""
    checkout.run("test", *hidden_compilers(), "//...").succeeded()
