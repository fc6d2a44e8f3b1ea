# SPDX-License-Identifier: MIT
"""An echo server as a program of its own, so that it has descriptors of its own.

`python3 echo_server.py ADDRESS PORT` serves any number of connections in one thread.
"""

import selectors
import socket
import sys


def serve(address: str, port: int) -> None:
    ready = selectors.DefaultSelector()
    listener = socket.create_server((address, port), backlog=4096)
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            if sock is listener:
                ready.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            try:
                data = sock.recv(65536)
            except ConnectionError:
                data = b""
            if data:
                sock.sendall(data)
            else:
                ready.unregister(sock)
                sock.close()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
