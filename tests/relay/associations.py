# SPDX-License-Identifier: MIT
"""What happens to pipes over SCTP: one end is told that the other is gone, or all goes dark."""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.relay import wire_ext
from tests.relay.netns import Namespace

ABORT = struct.pack(">BBH", 6, 0, 4)
POLYNOMIAL = 0x82F63B78  # CRC32c, reflected
ETH_P_ALL = 3  # those that leave, too
LP, DEVICE = "10.77.0.1", "wire-r"  # of two namespaces, and rp's end of the link to it


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def packet(src_port: int, dst_port: int, tag: int, chunk: bytes) -> bytes:
    ports = struct.pack(">HHI", src_port, dst_port, tag)
    return ports + struct.pack("<I", crc32c(ports + bytes(4) + chunk)) + chunk


class Associations:
    """Those of lp with the extension's port of rp, which is in `far`: seen at `device`."""

    def __init__(self, far: Namespace, lp: str, device: str) -> None:
        self.lp = lp
        self.killed = 0
        with far.entered():
            self.tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
            self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_SCTP)
        self.tap.bind((device, ETH_P_ALL))
        self.tap.settimeout(10)

    def _seen(self) -> tuple[int, int]:
        """lp's port and tag of the next pipe to which rp sends something."""
        while True:
            seen = self.tap.recv(2048)
            at = seen[0] % 16 * 4
            if seen[0] >> 4 != 4 or seen[9] != socket.IPPROTO_SCTP or len(seen) < at + 13:
                continue
            rp, lp, tag = struct.unpack_from(">HHI", seen, at)
            if rp == wire_ext.PORT and tag and seen[at + 12] != ABORT[0]:
                return lp, tag

    def _next(self) -> tuple[int, int]:
        """The same, of what is sent from now on."""
        self.tap.setblocking(False)
        try:
            while True:
                self.tap.recv(2048)  # what is of before
        except BlockingIOError:
            self.tap.settimeout(10)
        return self._seen()

    def kill_one(self) -> int:
        """lp's end of some pipe that is in use gets an ABORT; rp's learns of it by the answer."""
        lp, tag = self._next()
        self.raw.sendto(packet(wire_ext.PORT, lp, tag, ABORT), (self.lp, 0))
        self.killed += 1
        return lp

    def in_use(self) -> int:
        """lp's port of some pipe that carries something now."""
        return self._next()[0]

    def close(self) -> None:
        self.tap.close()
        self.raw.close()


@contextmanager
def associations(far: Namespace, lp: str = LP, device: str = DEVICE) -> Iterator[Associations]:
    found = Associations(far, lp, device)
    try:
        yield found
    finally:
        found.close()


@contextmanager
def dark(
    far: Namespace, what: str, port: int | None = None, ways: Sequence[str] = ("up", "down")
) -> Iterator[None]:
    """Pipes of that transport bring nothing to rp, and rp's bring nothing; nobody is told.

    All of them, or the one at lp's `port`.
    """
    ports = {"up": ("input", "dport", "sport"), "down": ("output", "sport", "dport")}
    rules = "\n".join(
        f"chain {hook} {{\ntype filter hook {hook} priority 0\n{what} {rp} {wire_ext.PORT} "
        + ("" if port is None else f"{what} {lp} {port} ")
        + "counter drop\n}"
        for hook, rp, lp in (ports[way] for way in ways)
    )
    far.nft(f"table inet dark {{\n{rules}\n}}\n")
    try:
        yield
    finally:
        far.run("nft", "delete", "table", "inet", "dark")
