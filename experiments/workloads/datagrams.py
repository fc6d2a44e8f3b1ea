# SPDX-License-Identifier: MIT
"""The server of the datagrams: `python -m experiments.workloads.datagrams ADDRESS`

It answers DNS queries, and sends back what flows send, with the time at which it came: client and
server share a kernel, so they share a clock. It says so when it is ready.
"""

import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from experiments.workloads.association import LARGEST
from experiments.workloads.pattern import WrongByte, check, piece

NAMES_PORT, FLOWS_PORT = 53, 7010
QUESTION = b"\7example\3com\0" + struct.pack("!HH", 1, 1)  # an IPv4 address is asked for
ANSWER = struct.pack("!HHHIH4B", 0xC00C, 1, 1, 60, 4, *(192, 0, 2, 1))
HEAD = struct.Struct("!IQQ")


@dataclass(frozen=True)
class Packet:
    """One of a flow: its number, and when it was sent and came to the server, in ns."""

    number: int
    sent_ns: int
    came_ns: int = 0

    def packed(self, start: int, size: int) -> bytes:
        """What follows the head is of the pattern, from `start` on, as in every transfer."""
        head = HEAD.pack(self.number, self.sent_ns, self.came_ns)
        return head + piece(start, self.number * size, size - HEAD.size)

    @classmethod
    def parsed(cls, data: bytes, start: int, size: int) -> Self:
        """Raises WrongByte if it is not what was sent."""
        if len(data) != size:
            raise WrongByte(f"a packet of {len(data)} bytes, not {size}")
        packet = cls(*HEAD.unpack_from(data))
        check(start, packet.number * size, data[HEAD.size :])
        return packet


def stamped(data: bytes) -> bytes:
    """A flow's packet, back again."""
    number, sent_ns, _ = HEAD.unpack_from(data)
    return HEAD.pack(number, sent_ns, time.monotonic_ns()) + data[HEAD.size :]


def query(number: int) -> bytes:
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + QUESTION


def resolved(data: bytes) -> bytes:
    """The answer of a name server that knows one name."""
    return data[:2] + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0) + QUESTION + ANSWER


def reply(sock: socket.socket, answer: Callable[[bytes], bytes]) -> None:
    while True:
        data, peer = sock.recvfrom(LARGEST)
        sock.sendto(answer(data), peer)


def main() -> None:
    address = sys.argv[1]
    for port, answer in ((NAMES_PORT, resolved), (FLOWS_PORT, stamped)):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((address, port))
        threading.Thread(target=reply, args=(sock, answer)).start()
    print(f"datagrams: ready on {address}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
