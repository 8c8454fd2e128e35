"""The program after each pass, as files."""

from __future__ import annotations

import re
import time
from pathlib import Path

from pypto.build.layout import write_file
from pypto.build.profile import CompileProfile
from pypto.ir.nodes import Program
from pypto.ir.python_text import python_text

PASSES_FOLDER = "passes_dump"
OWN_DUMP = re.compile(r"\d{2,}_after_\w+\.py")
"""Names of the files below it."""


class PassRecorder:
    """Observes the passes of one compilation: measures them, and writes what they made.

    Attributes:
        names: the passes so far.
    """

    def __init__(self, profile: CompileProfile, directory: Path | None) -> None:
        """Measure into ``profile``; write below ``directory`` if there is one."""
        self.names: list[str] = []
        self._profile = profile
        self._directory = directory
        self._began = time.perf_counter()

    def __call__(self, name: str, program: Program) -> None:
        self._profile.add("pass", name, time.perf_counter() - self._began)
        if self._directory is not None:
            text = python_text(program, f"After {name}")
            write_file(self._directory, f"{PASSES_FOLDER}/{len(self.names):02}_after_{name}.py", text.encode())
        self.names.append(name)
        # What the files take is not the next pass's time.
        self._began = time.perf_counter()

    def end(self) -> None:
        """Whatever came after the last pass was code generation."""
        self._profile.add("codegen", "generate", time.perf_counter() - self._began)
