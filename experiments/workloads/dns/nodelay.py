# SPDX-License-Identifier: MIT
"""TCP_NODELAY for what comes to a port of a program that does not set it by itself.

unbound leaves Nagle's algorithm on: while an answer is not acknowledged the next one waits.
Connections have the setting of the socket that they came to, of which the kernel gives another
process a copy (pidfd_getfd, Linux 5.6).
"""

import ctypes
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PIDFD_GETFD = 438  # the same number on every machine
_libc = ctypes.CDLL(None, use_errno=True)


def set_on(pid: int, port: int) -> None:
    """Raises OSError, also where that process does not listen on this port."""
    found = [sock for sock in _listening(pid) if sock.getsockname()[1] == port]
    for sock in found:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.close()
    if not found:
        raise OSError(f"process {pid} does not listen on port {port}")


def _listening(pid: int) -> Iterator[socket.socket]:
    process = os.pidfd_open(pid)
    try:
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile, or no socket
                if not str(each.readlink()).startswith("socket:"):
                    continue
                sock = _copy(process, int(each.name))
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    yield sock
                else:
                    sock.close()
    finally:
        os.close(process)


def _copy(process: int, number: int) -> socket.socket:
    descriptor = _libc.syscall(_PIDFD_GETFD, process, number, 0)
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"pidfd_getfd: {os.strerror(error)}")
    return socket.socket(fileno=descriptor)
