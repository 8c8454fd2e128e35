"""Runs tools that never end, in private roots below the working directory; each writes the id of its process."""

from __future__ import annotations

import sys
from pathlib import Path

from pypto.build.parallel import run_all
from pypto.toolchain import Bindings, Toolchain, ToolchainDescriptor
from pypto.toolchain.tools import Command, private_root

here = Path.cwd()
toolchain = Toolchain(ToolchainDescriptor({}), Bindings({name: here for name in ("gcc", "isa", "ptoas")}))


def build(name: str) -> None:
    with private_root(toolchain, parent=here / "roots") as root:
        script = (
            f"echo $$ > {here}/{name}.part; mv {here}/{name}.part {here}/{name}.pid; touch w/half; sleep 600 & wait"
        )
        root.run(Command(("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin"}), f"compile {name}")


run_all(build, sys.argv[1:], jobs=len(sys.argv))
