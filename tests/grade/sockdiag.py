# SPDX-License-Identifier: MIT
"""What a program has not read yet from a connection, asked of the kernel (inet_diag).

/proc/net/tcp would tell it as well, but is read through from end to end, which takes
milliseconds; this is one look-up and needs no privilege.
"""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
import termios

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR = 2
NLM_F_REQUEST = 1
ANY_COOKIE = 0xFFFFFFFF
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBxxI")
PORTS = struct.Struct("!HH")
ADDRESS = struct.Struct("=4s12x")
TAIL = struct.Struct("=III")
RQUEUE_AT = HEADER.size + 4 + 48 + 4  # in the answer: behind the socket's identity and expiry


class SocketDiag:
    """Ask in the network namespace in which it was made."""

    def __init__(self) -> None:
        self.netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
        self.netlink.settimeout(1.0)

    def unread(self, sock: socket.socket) -> int:
        """Bytes sent on this socket that its peer's program has not read; same host only."""
        (on_the_way,) = struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0" * 4))
        return on_the_way + self._receive_queue(sock.getpeername(), sock.getsockname())

    def _receive_queue(self, local: tuple[str, int], remote: tuple[str, int]) -> int:
        identity = (
            PORTS.pack(local[1], remote[1])
            + ADDRESS.pack(socket.inet_aton(local[0]))
            + ADDRESS.pack(socket.inet_aton(remote[0]))
            + TAIL.pack(0, ANY_COOKIE, ANY_COOKIE)
        )
        body = REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0xFFFFFFFF) + identity
        size = HEADER.size + len(body)
        self.netlink.send(HEADER.pack(size, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0) + body)
        answer = self.netlink.recv(8192)
        if HEADER.unpack_from(answer)[1] == NLMSG_ERROR:
            (code,) = struct.unpack_from("=i", answer, HEADER.size)
            if -code == errno.ENOENT:  # closed meanwhile
                return 0
            raise OSError(-code, "inet_diag")
        return struct.unpack_from("=I", answer, RQUEUE_AT)[0]

    def close(self) -> None:
        self.netlink.close()
