# SPDX-License-Identifier: MIT
"""TCP segments of a capture by tcpdump, on Ethernet, IPv4: no more than the accounts need."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAGIC = {b"\xd4\xc3\xb2\xa1": 1e-6, b"\x4d\x3c\xb2\xa1": 1e-9}  # unit of the second time field
ETHERNET, IPV4, TCP, TIMESTAMPS = 1, b"\x08\x00", 6, 8


class Segment(NamedTuple):
    time: float  # UNIX
    to: int  # the port that it goes to
    seq: int
    sent_at: int  # TSval of its sender: tells a segment from the same one sent again
    data: bytes


def segments(path: Path) -> Iterator[Segment]:
    """Those with data, in the order in which they were seen; a file cut short ends there."""
    raw = path.read_bytes()
    unit = MAGIC.get(raw[:4])
    if unit is None or struct.unpack_from("<I", raw, 20)[0] != ETHERNET:
        raise ValueError(f"{path}: no capture of this machine's tcpdump on Ethernet")
    at = 24
    while at + 16 <= len(raw):
        seconds, part, size, _ = struct.unpack_from("<IIII", raw, at)
        frame = raw[at + 16 : at + 16 + size]
        at += 16 + size
        if len(frame) < size:
            return
        found = _segment(seconds + part * unit, frame)
        if found:
            yield found


def _segment(time: float, frame: bytes) -> Segment | None:
    if frame[12:14] != IPV4 or frame[23] != TCP:
        return None
    packet = frame[14:]
    total = struct.unpack_from("!H", packet, 2)[0]
    tcp = packet[4 * (packet[0] & 15) : total]
    data = tcp[4 * (tcp[12] >> 4) :]
    if not data:
        return None
    (to, seq) = struct.unpack_from("!HI", tcp, 2)
    return Segment(time, to, seq, _timestamp(tcp[20 : 4 * (tcp[12] >> 4)]), data)


def _timestamp(options: bytes) -> int:
    at = 0
    while at < len(options) and options[at]:
        if options[at] == 1:
            at += 1
        elif options[at] == TIMESTAMPS:
            return struct.unpack_from("!I", options, at + 2)[0]
        else:
            at += max(2, options[at + 1]) if at + 1 < len(options) else 2
    return 0
