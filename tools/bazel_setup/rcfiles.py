"""What Bazel reads from the prefix: module overrides, options, and the launcher `bin/bazel`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

DATA = Path(__file__).parent / "data"
STUBS = ("protobuf", "zlib", "apple_support", "buildozer")
"""Modules that Debian's declare and nothing here uses; empty ones stand for them if they are not packaged."""
COVERAGE_REPOSITORY = "bazel_tools~remote_coverage_tools_extension~remote_coverage_tools"
HEAD = "# Written by tools/bazel; holds this machine's paths.\n"


def find_modules(root: Path, final: Path, tmp: Path) -> dict[str, Path]:
    """Bazel modules in the unpacked packages, by name, with the place each will have; stubs are written."""
    found: dict[str, Path] = {}
    base = root / "usr/share/bazel"
    for path in sorted(base.rglob("MODULE.bazel")):
        if "embedded_tools" in path.parts or len(path.relative_to(base).parts) > 3:
            continue
        name = re.search(r"^module\(\s*name\s*=\s*\"([^\"]+)\"", path.read_text(), re.M)
        if name:
            found[name[1]] = final / "root" / path.parent.relative_to(root)
    for stub in STUBS:
        if stub not in found:
            folder = tmp / "stubs" / stub
            folder.mkdir(parents=True)
            (folder / "MODULE.bazel").write_text(f'module(name = "{stub}", version = "0")\n')
            (folder / "BUILD.bazel").touch()
            if stub == "buildozer":  # `bazel mod` evaluates this module's extension
                shutil.copyfile(DATA / "buildozer_binary.bzl", folder / "buildozer_binary.bzl")
            found[stub] = final / "stubs" / stub
    return found


def write(tmp: Path, final: Path, jvm: Path, modules: Mapping[str, Path]) -> None:
    """Write options and launcher into `tmp`, which will lie at `final`; `jvm` is relative to its root folder."""
    tools = tmp / "stubs/coverage_tools"
    tools.mkdir(parents=True)
    (tools / "REPO.bazel").touch()
    shutil.copyfile(DATA / "coverage_merge.py", tools / "merge.py")
    (tools / "merge.py").chmod(0o755)
    shutil.copyfile(DATA / "coverage_tools.BUILD", tools / "BUILD.bazel")

    lines = [f"common --override_module={n}={p}" for n, p in sorted(modules.items())]
    lines += [
        f"common --override_repository={COVERAGE_REPOSITORY}={final}/stubs/coverage_tools",
        "# Debian's Bazel writes an empty MODULE.bazel.lock, and cannot read a real one.",
        "common --lockfile_mode=off",
        "# The legacy WORKSPACE suffix would download modules from the web.",
        "common --noenable_workspace",
        "# A sandbox hides /tmp, and with it a prefix that lies there.",
        f"common --sandbox_add_mount_pair={final}",
    ]
    (tmp / "overrides.bazelrc").write_text(HEAD + "\n".join(lines) + "\n")
    (tmp / "bazelrc").write_text(
        f"{HEAD}"
        f"startup --install_base={final}/root/usr/share/bazel\n"
        "startup --trust_install_base\n"
        f"startup --server_javabase={final / 'root' / jvm}\n"
        f"import {final}/overrides.bazelrc\n"
    )
    (tmp / "bin").mkdir()
    launcher = tmp / "bin/bazel"
    launcher.write_text(
        "#!/bin/sh\n"
        "# Outside a UTF-8 locale the server dies on the first file name that is not ASCII.\n"
        "export LC_ALL=C.UTF-8\n"
        f"exec '{final}/root/usr/bin/bazel' --nosystem_rc --bazelrc='{final}/bazelrc' \"$@\"\n"
    )
    launcher.chmod(0o755)
