# SPDX-License-Identifier: MIT
"""Starts nginx on sockets made here, some of which speak MPTCP.

    python -m experiments.workloads.web.nginx FOLDER PORT ... mptcp:CC:PORT ...

nginx knows no MPTCP, but takes over open sockets, as it does when it replaces itself: by their
numbers in its environment. What comes in by a socket that speaks MPTCP may speak it, too.
"""

import os
import socket
import sys

from experiments.workloads.exchange import IPPROTO_MPTCP, set_congestion_control

BACKLOG = 1024


def listening(word: str) -> socket.socket:
    port, cc = int(word.split(":")[-1]), word.split(":")[1] if ":" in word else None
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP if cc else 0)
    if cc:
        set_congestion_control(sock, cc)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("0.0.0.0", port))
    sock.listen(BACKLOG)
    sock.set_inheritable(True)
    return sock


def main(folder: str, *words: str) -> None:
    sockets = [listening(word) for word in words]
    numbers = "".join(f"{sock.fileno()};" for sock in sockets)
    argv = ["nginx", "-p", folder, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
    os.execvpe(argv[0], argv, {**os.environ, "NGINX": numbers})


if __name__ == "__main__":
    main(*sys.argv[1:])
