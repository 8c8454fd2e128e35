"""Bazel's persistent worker protocol, JSON or protobuf, one request at a time.

The process loads pypto once. Every request runs in a fork of it, so a kernel's module is imported by a process that has
never seen another one, and nothing that a step changes outlives it. Both protocols are read with the standard library:
the messages are two small ones, and an action that imported protobuf would start slower than it runs.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Protocol

# What the steps import, so that a fork finds it loaded.
PRELOADED = (
    "argparse",
    "runpy",
    "pypto.build.assemble",
    "pypto.build.cli",
    "pypto.build.compile_",
    "pypto.build.entry",
    "pypto.build.generate",
    "pypto.build.seal",
    "pypto.build.specialize",
    "pypto.bundle.reading",
    "pypto.bundle.writing",
    "pypto.codegen.generate",
    "pypto.language.lower",
    "pypto.language.parser",
    "pypto.runtime.binary_manifest",
    "pypto.runtime.kernel_compiler",
    "pypto.toolchain.cli",
)


@dataclass(frozen=True)
class Request:
    """One step to run."""

    arguments: list[str]
    request_id: int = 0


class Channel(Protocol):
    """One of the two protocols."""

    def read(self) -> Request | None:
        """The next request; None at the end."""

    def write(self, request_id: int, exit_code: int, output: str) -> None:
        """Answer a request."""


class JsonChannel:
    """One JSON object after another."""

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._source, self._sink = source, sink

    def read(self) -> Request | None:
        line = self._source.readline()
        while line and not line.strip():
            line = self._source.readline()
        if not line:
            return None
        record = json.loads(line)
        return Request([str(word) for word in record.get("arguments", ())], int(record.get("requestId", 0)))

    def write(self, request_id: int, exit_code: int, output: str) -> None:
        answer = {"exitCode": exit_code, "output": output, "requestId": request_id}
        self._sink.write(json.dumps(answer).encode("ascii") + b"\n")
        self._sink.flush()


class ProtoChannel:
    """Messages of ``worker_protocol.proto``, each after its length."""

    _ARGUMENTS, _REQUEST_ID = 1, 3
    _VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._source, self._sink = source, sink

    def read(self) -> Request | None:
        length = self._varint_of_stream()
        if length is None:
            return None
        data = self._source.read(length)
        if len(data) != length:
            raise EOFError("the request is not complete")
        arguments, request_id, at = [], 0, 0
        while at < len(data):
            tag, at = _varint(data, at)
            field, kind = tag >> 3, tag & 7
            if kind == self._VARINT:
                value, at = _varint(data, at)
                if field == self._REQUEST_ID:
                    request_id = value
            elif kind == self._BYTES:
                size, at = _varint(data, at)
                if field == self._ARGUMENTS:
                    arguments.append(data[at : at + size].decode("utf-8"))
                at += size
            elif kind in (self._FIXED64, self._FIXED32):
                at += 8 if kind == self._FIXED64 else 4
            else:
                raise ValueError(f"field {field} of a request has the unknown type {kind}")
        return Request(arguments, request_id)

    def write(self, request_id: int, exit_code: int, output: str) -> None:
        text = output.encode("utf-8")
        message = b"".join(
            (
                b"\x08" + _encoded(exit_code) if exit_code else b"",
                b"\x12" + _encoded(len(text)) + text if text else b"",
                b"\x18" + _encoded(request_id) if request_id else b"",
            )
        )
        self._sink.write(_encoded(len(message)) + message)
        self._sink.flush()

    def _varint_of_stream(self) -> int | None:
        data = b""
        while byte := self._source.read(1):
            data += byte
            if byte[0] < 0x80:
                return _varint(data, 0)[0]
        return None


def channel(source: IO[bytes], sink: IO[bytes]) -> Channel:
    """The protocol that Bazel speaks: a JSON object begins with ``{"``, which no request of the other does."""
    peek = getattr(source, "peek")  # noqa: B009 - IO has no peek, a buffered reader does
    start = peek(2)[:2]
    # 0x22 would be field 4 as a string, and in WorkRequest that field is a bool.
    return JsonChannel(source, sink) if start == b'{"' else ProtoChannel(source, sink)


def serve(run: Callable[[list[str]], None]) -> None:
    """Answer requests until Bazel closes the stream."""
    for name in PRELOADED:
        __import__(name)
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a step prints must not get between the answers
    talk = channel(source, sink)
    while (request := talk.read()) is not None:
        talk.write(request.request_id, *_in_a_fork(run, request.arguments))


def _in_a_fork(run: Callable[[list[str]], None], arguments: list[str]) -> tuple[int, str]:
    """Exit status and output of a step."""
    with tempfile.TemporaryFile() as log:
        child = os.fork()
        if child == 0:
            status = 70
            try:
                null = os.open(os.devnull, os.O_RDONLY)
                os.dup2(null, 0)
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                status = _status(run, arguments)
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)
        _, waited = os.waitpid(child, 0)
        log.seek(0)
        output = log.read().decode("utf-8", "replace")
    status = os.waitstatus_to_exitcode(waited)
    if status < 0:
        return 128 - status, f"{output}the step was ended by signal {-status}\n"
    return status, output


def _status(run: Callable[[list[str]], None], arguments: list[str]) -> int:
    try:
        run(arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _encoded(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
