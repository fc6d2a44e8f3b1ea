# SPDX-License-Identifier: MIT
"""Becomes a program that is handed listening sockets, as systemd starts it by a .socket unit.

    activate.py NAME=ADDRESS:PORT... -- COMMAND...
    activate.py NAME=#DESCRIPTOR... -- COMMAND...

A port without an address is [::] for IPv4 too, as in ListenStream=; NAME may be empty. The kind
`dgram` in front of the address makes it one that nobody can use.
"""

import fcntl
import os
import socket
import sys

FIRST = 3


def handed(where: str) -> socket.socket:
    if where.startswith("#"):
        return socket.socket(fileno=int(where[1:]))
    host, _, port = where.rpartition(":")
    kind = socket.SOCK_STREAM
    if host.startswith("dgram"):
        host, kind = host.removeprefix("dgram"), socket.SOCK_DGRAM
    host = host.strip("[]")
    sock = socket.socket(socket.AF_INET if "." in host else socket.AF_INET6, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, bool(host))
    sock.bind((host or "::", int(port)))
    if kind == socket.SOCK_STREAM:
        sock.listen()
    return sock


def main() -> None:
    at = sys.argv.index("--")
    names, sockets = [], []
    for word in sys.argv[1:at]:
        name, _, where = word.partition("=")
        names.append(name)
        sockets.append(handed(where))
    # Above all of them first, so that none takes the place of another.
    above = [fcntl.fcntl(sock, fcntl.F_DUPFD, FIRST + len(sockets)) for sock in sockets]
    for i, fd in enumerate(above):
        os.dup2(fd, FIRST + i)
    env = {**os.environ, "LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": ":".join(names)}
    env.setdefault("LISTEN_PID", str(os.getpid()))
    os.execve(sys.argv[at + 1], sys.argv[at + 1 :], env)


if __name__ == "__main__":
    main()
