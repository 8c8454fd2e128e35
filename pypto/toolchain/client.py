"""Running the user's own package clients, pip and apt, with progress taken from the files they write."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pypto.toolchain.errors import FetchError
from pypto.toolchain.progress import Progress, folder_size


@dataclass(frozen=True)
class Result:
    """Exit status and everything the client printed."""

    status: int
    output: str

    def lines(self, limit: int = 6) -> str:
        """The last lines, indented, to end an error message with."""
        said = [line.strip() for line in self.output.splitlines() if line.strip()]
        errors = [line for line in said if line.startswith(("ERROR", "E:", "Err:", "Expected", "Got"))]
        return "".join(f"\n  {line[:300]}" for line in (errors or said)[-limit:])


def run_client(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    watch: Sequence[Path] = (),
    progress: Progress | None = None,
) -> Result:
    """Run a client to its end; `progress` follows the size of the folders in `watch`."""
    with tempfile.TemporaryFile() as log:
        try:
            child = subprocess.Popen(
                argv,
                env=None if env is None else dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise FetchError(f"cannot start {argv[0]}: {error.strerror}") from None
        try:
            while child.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(0.25)
                if progress is not None:
                    progress.update(folder_size(watch))
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGTERM)
                child.wait()
        log.seek(0)
        return Result(child.returncode, log.read().decode("utf-8", "replace"))
