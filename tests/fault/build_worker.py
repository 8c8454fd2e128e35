"""Runs tools that never end, in private roots below the working directory; each writes the id of its process.

`--elsewhere` builds in a thread beside the main one, `--around` inside a temporary folder of its own, `--stuck` with
clean-up that never ends, `--early=NUMBER` gets a signal while its tool is being started.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


class EarlySignal(subprocess.Popen):  # type: ignore[type-arg]
    """A tool during whose start, after it began to run, a signal arrives."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        number = next(int(name.partition("=")[2]) for name in sys.argv if name.startswith("--early="))
        while not list(here.glob("*.pid")):
            time.sleep(0.01)
        os.kill(os.getpid(), number)
        time.sleep(0.3)


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


if any(name.startswith("--early=") for name in options):
    subprocess.Popen = EarlySignal  # type: ignore[misc]
if "--elsewhere" in options:
    thread = threading.Thread(target=build_all)
    thread.start()
    thread.join()
else:
    build_all()
