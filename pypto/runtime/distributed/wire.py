"""Messages between the caller, the supervisor and the ranks: JSON over a stream socket, at most one descriptor each."""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("<Q")


def send(connection: socket.socket, message: Any, descriptor: int | None = None) -> None:
    """Send a message; the receiver gets a descriptor of its own.

    Raises:
        OSError: the other side is gone.
    """
    data = json.dumps(message).encode()
    header = _LENGTH.pack(len(data))
    # Eight bytes are never split, so that the descriptor travels with all of them.
    socket.send_fds(connection, [header], [] if descriptor is None else [descriptor])
    connection.sendall(data)


def receive(connection: socket.socket) -> tuple[Any, int | None]:
    """Wait for the next message; the caller closes the descriptor.

    Raises:
        EOFError: the other side is gone.
        TimeoutError: the socket's timeout is over.
    """
    try:
        header, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, 1)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        if len(header) < _LENGTH.size:
            raise EOFError
        return json.loads(_exactly(connection, _LENGTH.unpack(header)[0])), descriptors[0] if descriptors else None
    except ConnectionError:
        raise EOFError from None


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = connection.recv(min(count - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
