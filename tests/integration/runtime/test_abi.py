"""The C interface as the compiler lays it out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from pypto.runtime import abi, shared_objects
from pypto.runtime.kernel_config import MAX_RANK, RUNTIME_ABI


def test_ctypes_agrees_with_the_compiler(shared_object: Callable[[str], bytes]) -> None:
    library = shared_objects.load(shared_object("layout"), "layout")
    text = ctypes.create_string_buffer(8192)
    library.describe_layout(text, len(text))
    printed = text.value.decode().splitlines()
    mirrored = []
    for structure in abi.STRUCTURES:
        descriptors = [(name, getattr(structure, name)) for name, _ in structure._fields_]
        fields = "".join(f" {name}={field.offset}:{field.size}" for name, field in descriptors)
        mirrored.append(f"{structure.__name__} {ctypes.sizeof(structure)}{fields}")
    mirrored.append(
        f"constants kMaxRank={MAX_RANK} PYPTO_RUNTIME_ABI={RUNTIME_ABI} kMessageSize={abi.MESSAGE_SIZE} "
        f"kChecked={abi.FLAG_CHECKED} kTimed={abi.FLAG_TIMED} kTraced={abi.FLAG_TRACED} kRing={abi.FLAG_RING}"
    )
    assert printed == mirrored
