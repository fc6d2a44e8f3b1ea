# SPDX-License-Identifier: MIT
"""A capture's frames, in the order of the file: pcap and pcapng, read as a stream.

One frame is in memory at a time. Whatever is in a file, only CaptureError is raised.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

SECOND = 10**9
BUFFER = 1 << 20
LARGEST = 1 << 18  # libpcap writes no larger frame
LARGEST_BLOCK = 1 << 24

PCAP = {  # by the first four bytes: byte order, ticks in a second
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
PCAPNG = b"\x0a\x0d\x0d\x0a"
OTHERS = {  # what people name by mistake
    b"\x1f\x8b": "compressed by gzip; uncompress it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; uncompress it first",
    b"\x04\x22\x4d\x18": "compressed by LZ4; uncompress it first",
    b"snoop": "a capture by snoop; editcap makes a pcapng of it",
    b"\x34\xcd\xb2\xa1": "a capture in the old format of Kuznetzov; editcap makes a pcapng of it",
    b"\xa1\xb2\xcd\x34": "a capture in the old format of Kuznetzov; editcap makes a pcapng of it",
}
INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET = 1, 2, 3, 6
TICKS, OFFSET = 9, 14  # options of an interface


class CaptureError(ValueError):
    """A file that cannot be analysed; the message begins with its name."""


class Record(NamedTuple):
    time_ns: int  # UNIX
    link: int  # the link type's number
    frame: bytes
    length: int  # on the wire: more than the frame has, where the capture was cut


class Capture:
    """A file, and how far it was read."""

    def __init__(self, path: Path, *, cut_short: bool = False) -> None:
        """`cut_short`: one that ends within a frame is read up to there, and is_cut says so."""
        self.path = path
        self.size = 0
        self.read = 0  # bytes
        self.packets = 0
        self.is_cut = False
        self._take_cut = cut_short

    def records(self) -> Iterator[Record]:
        try:
            with self.path.open("rb", buffering=BUFFER) as file:
                self.size = os.fstat(file.fileno()).st_size
                yield from self._records(file)
        except OSError as why:
            raise CaptureError(f"{self.path}: {why.strerror or why}") from None

    def wrong(self, why: str) -> CaptureError:
        return CaptureError(f"{self.path}: {why}")

    def _records(self, file: BinaryIO) -> Iterator[Record]:
        magic = file.read(4)
        if not magic:
            raise self.wrong("the file is empty")
        try:
            if magic in PCAP:
                yield from self._pcap(file, *PCAP[magic])
            elif magic == PCAPNG:
                yield from self._pcapng(file)
            else:
                raise self.wrong(_what(magic + file.read(4)))
        except EOFError:
            where = f"it ends within packet {self.packets + 1}, at byte {self.read}"
            if not self._take_cut:
                raise self.wrong(f"{where}; --cut-short takes what is there") from None
            self.is_cut = True
        if not self.packets:
            raise self.wrong("there is no packet in it")

    def _pcap(self, file: BinaryIO, order: str, ticks: int) -> Iterator[Record]:
        head = file.read(20)
        if len(head) < 20:
            raise self.wrong("it ends within the header of a pcap file")
        major, minor, _, _, _, link = struct.unpack(f"{order}HHIIII", head)
        if major != 2:
            raise self.wrong(f"version {major}.{minor} of the pcap format; 2.4 is read")
        link &= 0xFFFF  # above it is the length of a check sum
        unpack = struct.Struct(f"{order}IIII").unpack
        factor = SECOND // ticks
        self.read = 24
        read = file.read
        while head := read(16):
            if len(head) < 16:
                raise EOFError
            seconds, part, captured, length = unpack(head)
            if part >= ticks or captured > LARGEST:
                raise self.wrong(
                    f"packet {self.packets + 1}, at byte {self.read}, is none: "
                    f"{captured} bytes at {seconds}.{part}"
                )
            frame = read(captured)
            if len(frame) < captured:
                raise EOFError
            self.read += 16 + captured
            self.packets += 1
            yield Record(seconds * SECOND + part * factor, link, frame, length)

    def _pcapng(self, file: BinaryIO) -> Iterator[Record]:
        interfaces: list[tuple[int, int, int]] = []  # link, ticks in a second, offset in seconds
        order, kind = "", PCAPNG
        while True:
            if kind == PCAPNG:
                order, body = self._section(file)
                interfaces.clear()
            else:
                body = self._block(file, file.read(4), order)
                number = int.from_bytes(kind, "little" if order == "<" else "big")
                if number == INTERFACE:
                    interfaces.append(self._interface(body, order))
                elif number in (PACKET, OLD_PACKET):
                    yield self._packet(body, order, interfaces, number)
                elif number == SIMPLE_PACKET:
                    raise self.wrong(f"packet {self.packets + 1} has no time (a simple block)")
            self.read += 12 + len(body)
            kind = file.read(4)
            if not kind:
                return
            if len(kind) < 4:
                raise EOFError

    def _section(self, file: BinaryIO) -> tuple[str, bytes]:
        head = file.read(8)
        if len(head) < 8:
            raise EOFError
        order = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}.get(head[4:])
        if order is None:
            raise self.wrong(f"the section at byte {self.read} of a pcapng file is none")
        body = head[4:] + self._block(file, head[:4], order, 4)
        if len(body) < 16 or struct.unpack_from(f"{order}H", body, 4)[0] != 1:
            raise self.wrong(f"the section at byte {self.read} is not of version 1 of pcapng")
        return order, body

    def _block(self, file: BinaryIO, size: bytes, order: str, had: int = 0) -> bytes:
        """What is between a block's two lengths; `had` bytes of it were read before."""
        if len(size) < 4:
            raise EOFError
        (total,) = struct.unpack(f"{order}I", size)
        if total % 4 or not 12 + had <= total <= LARGEST_BLOCK:
            raise self.wrong(f"the block at byte {self.read} cannot have {total} bytes")
        wanted = total - 8 - had
        rest = file.read(wanted)
        if len(rest) < wanted:
            raise EOFError
        if rest[-4:] != size:
            raise self.wrong(f"the block at byte {self.read} ends with another length")
        return rest[:-4]

    def _interface(self, body: bytes, order: str) -> tuple[int, int, int]:
        if len(body) < 8:
            raise self.wrong(f"the interface at byte {self.read} has {len(body)} bytes")
        (link,) = struct.unpack_from(f"{order}H", body)
        ticks, offset, at = 10**6, 0, 8
        while at + 4 <= len(body):
            name, size = struct.unpack_from(f"{order}HH", body, at)
            value = body[at + 4 : at + 4 + size]
            at += 4 + (size + 3 & ~3)
            if name == 0:
                break
            if name == TICKS and size == 1 and value:
                ticks = 2 ** (value[0] & 127) if value[0] & 128 else 10 ** value[0]
            elif name == OFFSET and len(value) == 8:
                (offset,) = struct.unpack(f"{order}q", value)
        return link, ticks, offset

    def _packet(
        self, body: bytes, order: str, interfaces: list[tuple[int, int, int]], kind: int
    ) -> Record:
        if len(body) < 20:
            raise self.wrong(f"packet {self.packets + 1}, at byte {self.read}, has no header")
        where, high, low, captured, length = struct.unpack_from(f"{order}IIIII", body)
        if kind == OLD_PACKET:
            (where,) = struct.unpack_from(f"{order}H", body)
        if where >= len(interfaces):
            raise self.wrong(f"packet {self.packets + 1} is of interface {where}, which is nowhere")
        if captured > len(body) - 20:
            raise self.wrong(f"packet {self.packets + 1} is longer than its block")
        self.packets += 1
        link, ticks, offset = interfaces[where]
        time_ns = (high << 32 | low) * SECOND // ticks + offset * SECOND
        return Record(time_ns, link, body[20 : 20 + captured], length)


def _what(first: bytes) -> str:
    for magic, told in OTHERS.items():
        if first.startswith(magic):
            return f"it is {told}"
    return f"it is neither pcap nor pcapng: it begins with {first.hex(' ')}"
