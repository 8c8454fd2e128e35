"""One process that uses a store: `store_worker.py ROOT PRIVATE LOG [--stop-at POINT] [--hang] [--umask MASK]`.

Appends `start PID` and `end PID` to LOG around its build, and prints the outcome as JSON. `--stop-at` halts it for good
in front of a step of the publication (`module.function`, or `after:module.function`), `--hang` inside its builder; it
prints `stopped` then.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from artifact_samples import READY, sample_key, write_files

from pypto.jit.artifact_cache import ArtifactStore


def halt() -> None:
    print("stopped", flush=True)
    threading.Event().wait()


def stop_at(point: str) -> None:
    after = point.startswith("after:")
    module_name, name = point.removeprefix("after:").rsplit(".", 1)
    module = importlib.import_module(f"pypto.jit.artifact_cache.{module_name}")
    real = getattr(module, name)

    def stopping(*arguments: Any, **options: Any) -> Any:
        if after:
            real(*arguments, **options)
        halt()

    setattr(module, name, stopping)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("private", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("--stop-at")
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--umask", type=lambda text: int(text, 8))
    arguments = parser.parse_args()
    if arguments.umask is not None:
        os.umask(arguments.umask)
    if arguments.stop_at:
        stop_at(arguments.stop_at)

    def note(text: str) -> None:
        with arguments.log.open("a") as file:
            file.write(f"{text} {os.getpid()}\n")

    def build(directory: Path) -> None:
        note("start")
        if arguments.hang:
            halt()
        time.sleep(0.02)
        write_files(directory)
        note("end")

    store = ArtifactStore(arguments.root, private_root=arguments.private)
    result = store.get_or_build(sample_key(), READY, build)
    outcome = {
        "status": result.status.value,
        "failure": result.failure and result.failure.value,
        "directory": result.private_directory and str(result.private_directory),
    }
    print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
