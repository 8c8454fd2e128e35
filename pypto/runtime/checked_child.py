"""The child process of a checked run: loads the binaries, runs once, leaves the result in a shared file.

Needs the standard library only, so that it starts fast.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource

from pypto.runtime import abi, shared_objects


def main(order_text: str) -> None:
    """Carry out one order of `pypto.runtime.checked`."""
    order = json.loads(order_text)
    # A crash here is a finding, not a reason to write a core file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kernels = [abi.LoadedKernel(id, name, _library(descriptor, name)) for id, name, descriptor in order["kernels"]]
    orchestration = abi.Orchestration(
        _library(order["orchestration"], "orchestration"), kernels, len(order["arguments"])
    )
    with mmap.mmap(order["data"], order["size"]) as data:
        window = (ctypes.c_char * order["size"]).from_buffer(data)
        arguments = (abi.Argument * len(order["arguments"]))()
        for slot, argument in zip(arguments, order["arguments"], strict=True):
            slot.kind, slot.dtype, slot.direction = argument["kind"], argument["dtype"], argument["direction"]
            slot.scalar, slot.name, slot.rank = argument["scalar"], argument["name"].encode(), len(argument["shape"])
            for axis, (length, stride) in enumerate(zip(argument["shape"], argument["strides"], strict=True)):
                slot.shape[axis], slot.strides[axis] = length, stride
            if argument["offset"] is not None:
                slot.data = ctypes.addressof(window) + argument["offset"]
        ring = order["ring"] and abi.Ring(*order["ring"])
        result = orchestration.run(
            arguments, threads=order["threads"], checked=True, report_fd=order["report"], ring=ring
        )
        del window
    os.write(order["result"], bytes(result))


def _library(descriptor: int, name: str) -> ctypes.CDLL:
    return shared_objects.open_library(shared_objects.descriptor_path(descriptor), name)
