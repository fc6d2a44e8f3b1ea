# SPDX-License-Identifier: MIT
"""A download by datagrams: the server sends at a rate, whatever comes back.

    python -m experiments.workloads.udp_download ADDRESS PORT

The client asks in one datagram and again until the first one of the download is there. Each has its
number and bytes of the pattern, which are compared; what is lost is lost.
"""

import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from experiments.workloads.actors import Actor, Bins, Scene
from experiments.workloads.exchange import CutShort
from experiments.workloads.pattern import check, piece, start_of

SIZE = 1472  # bytes of a datagram: 1500 of IP
AGAIN_S = 1.0
READY = r"^udp_download: ready"
_ASK = struct.Struct("!4sQQd")  # magic, where the pattern starts, datagrams, seconds between two
_HEAD = struct.Struct("!Q")
_MAGIC = b"TM3u"


def packet(start: int, number: int) -> bytes:
    return _HEAD.pack(number) + piece(start, number * SIZE, SIZE - _HEAD.size)


def checked(data: bytes, start: int) -> int:
    """Its number. Raises WrongByte or CutShort."""
    if len(data) != SIZE:
        raise CutShort(f"a datagram of {len(data)} bytes, not {SIZE}")
    (number,) = _HEAD.unpack_from(data)
    check(start, number * SIZE, data[_HEAD.size :])
    return number


@dataclass(frozen=True, kw_only=True)
class UdpDownload(Actor):
    """`mbps` of datagrams from the server for `seconds`; how many bytes came in each bin, from the
    first one on."""

    mbps: float = 10.0
    seconds: float = 10.0

    def run(self, scene: Scene) -> dict[str, Any]:
        start = start_of(scene.seed, next(scene.streams))
        gap_s = SIZE * 8 / 1e6 / self.mbps
        ask = _ASK.pack(_MAGIC, start, round(self.seconds / gap_s), gap_s)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            sock.connect((scene.address, self.port))
            data = self._first(sock, ask, scene)
            began = scene.now()
            bins = Bins(scene)
            numbers: set[int] = set()
            while scene.now() < began + self.seconds:
                if data:
                    numbers.add(checked(data, start))
                    bins.add(len(data), scene.now() - began)
                data = self._next(sock)
        return {"bins": bins.bins, "came": len(numbers), "began_s": began}

    def _first(self, sock: socket.socket, ask: bytes, scene: Scene) -> bytes:
        sock.settimeout(AGAIN_S)
        while scene.now() < scene.seconds:
            sock.send(ask)
            try:
                return sock.recv(2 * SIZE)
            except TimeoutError:
                continue
        raise CutShort("no datagram of the download came")

    def _next(self, sock: socket.socket) -> bytes:
        sock.settimeout(0.05)
        try:
            return sock.recv(2 * SIZE)
        except TimeoutError:
            return b""


def send(sock: socket.socket, peer: tuple[str, int], ask: bytes) -> None:
    """By the clock, so that one that was late does not delay all that follow."""
    _, start, count, gap_s = _ASK.unpack(ask)
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number * gap_s - time.monotonic()))
        sock.sendto(packet(start, number), peer)


def serve(sock: socket.socket) -> None:
    """Until it is stopped, a thread for each client. Who asks again meanwhile was heard."""
    served: set[tuple[str, int]] = set()

    def answer(peer: tuple[str, int], ask: bytes) -> None:
        try:
            send(sock, peer, ask)
        finally:
            served.remove(peer)  # its port may be another client's next

    while True:
        ask, peer = sock.recvfrom(2 * SIZE)
        if len(ask) == _ASK.size and ask.startswith(_MAGIC) and peer not in served:
            served.add(peer)
            threading.Thread(target=answer, args=(peer, ask), daemon=True).start()


def main() -> None:
    address, port = sys.argv[1], int(sys.argv[2])
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, port))
    print(f"udp_download: ready on {address} port {port}", file=sys.stderr, flush=True)
    serve(sock)


if __name__ == "__main__":
    main()
