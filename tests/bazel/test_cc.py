"""Bazel's own C++ and Python rules with the downloaded GCC: no compiler of the machine is needed. Issue 6."""

from __future__ import annotations

import json

from workspaces import Workspace


def test_cc_library_and_py_test_without_a_compiler(checkout: Workspace) -> None:
    """A library, a test and a shared object that a py_test loads; every compiler is the downloaded one."""
    checkout.run("test", "//tests/bazel/cc:all").succeeded()
    listed = checkout.run(
        "aquery", "--output=jsonproto", "mnemonic('Cpp(Compile|Link|Archive)', //tests/bazel/cc:all)", stdout_only=True
    ).succeeded()
    actions = json.loads(listed.output)["actions"]
    assert {"CppArchive", "CppCompile", "CppLink"} <= {action["mnemonic"] for action in actions}
    for action in actions:
        assert action["arguments"][0].startswith("external/") and "gcc_download" in action["arguments"][0]
        assert not [word for word in action["arguments"] if word.startswith(("/", "-I/", "-L/"))]
