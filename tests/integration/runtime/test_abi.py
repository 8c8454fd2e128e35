"""The C interface as the compiler lays it out."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from pypto.runtime import abi
from pypto.runtime.kernel_config import MAX_RANK, RUNTIME_ABI


def test_ctypes_agrees_with_the_compiler(executable: Callable[[str], Path]) -> None:
    printed = subprocess.run([executable("layout")], check=True, capture_output=True, text=True).stdout.splitlines()
    mirrored = []
    for structure in abi.STRUCTURES:
        descriptors = [(name, getattr(structure, name)) for name, _ in structure._fields_]
        fields = "".join(f" {name}={field.offset}:{field.size}" for name, field in descriptors)
        mirrored.append(f"{structure.__name__} {abi.ctypes.sizeof(structure)}{fields}")
    mirrored.append(
        f"constants kMaxRank={MAX_RANK} PYPTO_RUNTIME_ABI={RUNTIME_ABI} kMessageSize={abi.MESSAGE_SIZE} "
        f"kChecked={abi.FLAG_CHECKED}"
    )
    assert printed == mirrored
