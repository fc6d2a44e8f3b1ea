# SPDX-License-Identifier: MIT
"""The two programs of the course's walk-through, with its command lines.

    python -m experiments.workloads.walkthrough server PORT N
    python -m experiments.workloads.walkthrough client IP PORT N SIZE_UP SIZE_DOWN [CC]

The client asks N times over one connection, each time with SIZE_UP bytes, and gets SIZE_DOWN bytes
back; the server serves N requests of a connection and ends it. Both look at every byte.
"""

import json
import socket
import sys
import time

from experiments.workloads import serve
from experiments.workloads.exchange import Connection, Refused, Request
from experiments.workloads.pattern import WrongByte, start_of

USAGE = "usage: walkthrough server PORT N | client IP PORT N SIZE_UP SIZE_DOWN [CC]"
CC = "cubic"
TAKES_S = 60.0


def server(port: int, count: int) -> None:
    """Connections one after the other, until it is stopped."""
    listener = serve.listener("0.0.0.0", str(port))
    print(f"server: ready on port {port} for {count} requests", file=sys.stderr, flush=True)
    while True:
        sock, peer = listener.accept()
        with sock:
            try:
                served = sum(1 for _ in range(count) if serve.exchange(sock))
                print(f"server: {served} of {count} for {peer[0]}", file=sys.stderr, flush=True)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(1 << 16):
                    pass
            except (OSError, ValueError, WrongByte, Refused) as error:  # the next may be right
                print(f"server: {peer[0]}: {error}", file=sys.stderr, flush=True)


def client(address: str, port: int, count: int, up: int, down: int, cc: str = CC) -> list[float]:
    """When each response was complete, in seconds since connect() was called."""
    done = []
    with Connection((address, port), cc, seconds=TAKES_S) as connection:
        for number in range(count):
            starts = start_of(number, 1), start_of(number, 2)
            connection.exchange(Request(cc, up, starts[0], down, starts[1]))
            done.append(time.monotonic() - connection.began)
        if connection.sock.recv(1):
            raise ConnectionError("the server says more than it was asked for")
    return done


def main() -> int:
    match sys.argv[1:]:
        case ["server", port, count]:
            server(int(port), int(count))
        case ["client", address, *words] if len(words) in (4, 5):
            json.dump(client(address, *map(int, words[:4]), *words[4:]), sys.stdout)
            print()
        case _:
            print(USAGE, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
