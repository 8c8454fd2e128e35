"""Runs tools that never end, in private roots below the working directory; each writes the id of its process.

`--elsewhere` builds in a thread beside the main one, `--around` inside a temporary folder of its own, `--stuck` with
clean-up that never ends.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pypto.build.parallel import run_all
from pypto.toolchain import Bindings, Toolchain, ToolchainDescriptor
from pypto.toolchain.cleanup import ended_by_sigterm
from pypto.toolchain.tools import Command, private_root

here = Path.cwd()
toolchain = Toolchain(ToolchainDescriptor({}), Bindings({name: here for name in ("gcc", "isa", "ptoas")}))


def build(name: str) -> None:
    with private_root(toolchain, parent=here / "roots") as root:
        script = (
            f"echo $$ > {here}/{name}.part; mv {here}/{name}.part {here}/{name}.pid; touch w/half; sleep 600 & wait"
        )
        root.run(Command(("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin"}), f"compile {name}")


@contextlib.contextmanager
def stuck() -> Iterator[None]:
    try:
        yield
    finally:
        (here / "stuck").touch()
        time.sleep(600)


names = [name for name in sys.argv[1:] if not name.startswith("--")]
options = {name for name in sys.argv[1:] if name.startswith("--")}


def build_all() -> None:
    with contextlib.ExitStack() as stack:
        if options & {"--around", "--stuck"}:
            stack.enter_context(ended_by_sigterm())
            stack.enter_context(tempfile.TemporaryDirectory(dir=here / "roots"))
        if "--stuck" in options:
            stack.enter_context(stuck())
        run_all(build, names, jobs=len(names))


if "--elsewhere" in options:
    thread = threading.Thread(target=build_all)
    thread.start()
    thread.join()
else:
    build_all()
