"""Keys, specs and builders that the tests of store, bundle and faults share."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pypto._identity import ToolchainIdentity
from pypto._identity.identity import COMPONENT_NAMES
from pypto.jit.artifact_cache import ArtifactKey, ArtifactSpec, ArtifactState, BuildKind

FILES = {"kernel_config.json": b'{"a":1}', "prebuilt/kernels/k.so": b"\x7fELF kernel", "empty": b""}
GENERATED = ArtifactSpec(ArtifactState.GENERATED, BuildKind.SINGLE_CHIP, ("kernel_config.json",))
READY = ArtifactSpec(ArtifactState.BINARY_READY, BuildKind.SINGLE_CHIP, ("kernel_config.json", "prebuilt/kernels/k.so"))


def sample_environment(letter: str = "a") -> ToolchainIdentity:
    return ToolchainIdentity.of({name: letter * 64 for name in COMPONENT_NAMES})


def sample_key(source: str = "b", specialization: str = "c", environment: str = "a") -> ArtifactKey:
    return ArtifactKey(sample_environment(environment), source * 64, specialization * 64)


class Builder:
    """Writes FILES and counts its calls; returns a value of its own each time."""

    def __init__(self) -> None:
        self.directories: list[Path] = []

    @property
    def calls(self) -> int:
        return len(self.directories)

    def __call__(self, directory: Path) -> dict[str, int]:
        self.directories.append(directory)
        write_files(directory)
        return {"call": self.calls}


def write_files(directory: Path) -> None:
    for name, data in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith(".so") else 0o644)


def snapshot(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every path below root with its mode, inode and bytes (or link target)."""
    found = {}
    for folder, folders, names in os.walk(root):
        for name in [*folders, *names]:
            path = Path(folder, name)
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                data = path.read_bytes()
            else:
                data = os.fsencode(os.readlink(path)) if stat.S_ISLNK(status.st_mode) else b""
            found[str(path.relative_to(root))] = (status.st_mode, status.st_ino, data)
    return found


def modes(root: Path) -> dict[str, int]:
    return {path: stat.S_IMODE(mode) for path, (mode, _, _) in snapshot(root).items()}


def fail_with(code: int) -> Callable[..., Any]:
    def failing(*arguments: Any, **options: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return failing
