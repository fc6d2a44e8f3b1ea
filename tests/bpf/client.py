# SPDX-License-Identifier: MIT
"""The program that is redirected: connects, and says what it was told. Standard library alone.

client.py ask|ask6 HOST PORT     one connection (ask6: by a socket of IPv6)
client.py many                   as many at once as addresses are named on standard input
client.py same SOURCE HOST PORT...  one after the other, all from one source port
client.py obey                   a line on standard input asks for a connection: "HOST PORT"
"""

import errno
import json
import resource
import selectors
import socket
import struct
import sys
from collections.abc import Iterator

RST_ON_CLOSE = struct.pack("ii", 1, 0)


def family_of(host: str) -> int:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def answer_of(sock: socket.socket) -> str:
    sock.settimeout(20)
    got = bytearray()
    while not got.endswith(b"\n"):
        block = sock.recv(4096)
        if not block:
            break
        got += block
    return got.decode().strip()


def ask(host: str, port: int, family: int | None = None, source: int = 0) -> dict[str, object]:
    sock = socket.socket(family or family_of(host))
    with sock:
        if source:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
            sock.bind(("", source))
        sock.settimeout(20)
        try:
            sock.connect((host, port))
            return {
                "peer": sock.getpeername()[:2],
                "own": sock.getsockname()[:2],
                "server": answer_of(sock),
            }
        except OSError as err:
            return {"error": errno.errorcode.get(err.errno or 0, str(err))}


def pairs(words: list[str]) -> Iterator[tuple[str, int]]:
    yield from zip(words[0::2], map(int, words[1::2]), strict=True)


def many(wanted: list[tuple[str, int]]) -> list[dict[str, object]]:
    """All are under way before the first is looked at."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    waiting = selectors.DefaultSelector()
    for address in wanted:
        sock = socket.socket(family_of(address[0]))
        sock.setblocking(False)
        sock.connect_ex(address)
        waiting.register(sock, selectors.EVENT_READ, address)
    found: list[dict[str, object]] = []
    while waiting.get_map():
        ready = waiting.select(30)
        if not ready:
            break
        for key, _ in ready:
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            try:
                found.append(
                    {"asked": key.data, "peer": sock.getpeername()[:2], "server": answer_of(sock)}
                )
            except OSError as err:
                found.append({"asked": key.data, "error": str(err)})
            waiting.unregister(sock)
            sock.close()
    return found


def main(words: list[str]) -> None:
    match words:
        case ["ask", host, port]:
            print(json.dumps(ask(host, int(port))))
        case ["ask6", host, port]:
            print(json.dumps(ask(host, int(port), socket.AF_INET6)))
        case ["many"]:
            print(json.dumps(many(list(pairs(sys.stdin.read().split())))))
        case ["same", source, *rest]:
            print(json.dumps([ask(*it, source=int(source)) for it in pairs(rest)]))
        case ["obey"]:
            print("ready", flush=True)
            for line in sys.stdin:
                host, port = line.split()
                print(json.dumps(ask(host, int(port))), flush=True)


main(sys.argv[1:])
