# SPDX-License-Identifier: MIT
"""A connection's handshake in asyncio, also of protocols that asyncio knows not."""

import asyncio
import errno
import os
import socket


async def connect(sock: socket.socket, to: tuple[str, int]) -> None:
    """As the loop's own sock_connect(), which knows no MPTCP. Raises OSError."""
    loop = asyncio.get_running_loop()
    error = sock.connect_ex(to)
    if error == errno.EINPROGRESS:
        writable = asyncio.Event()
        loop.add_writer(sock, writable.set)
        try:
            await writable.wait()
        finally:
            loop.remove_writer(sock)
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, os.strerror(error))
