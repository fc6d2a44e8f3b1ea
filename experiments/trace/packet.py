# SPDX-License-Identifier: MIT
"""What the analysis needs of a frame: whose it is, and how much it carries.

Lengths are those of the IP header, so a capture that was cut behind the headers (tcpdump -s 96)
gives the same figures as a whole one.
"""

import struct
from typing import NamedTuple

ETHERNET = 1
RAW = (12, 14, 101)
NULL = (0, 108)  # of BSD: a family before the packet
LINUX, LINUX2 = 113, 276  # tcpdump -i any
IPV4_ONLY, IPV6_ONLY = 228, 229
READ = {ETHERNET, *RAW, *NULL, LINUX, LINUX2, IPV4_ONLY, IPV6_ONLY}
TOLD = "Ethernet, raw IP, Linux cooked (any) and BSD loopback are read"
NAMES = {  # that people capture; all: https://www.tcpdump.org/linktypes.html
    9: "PPP",
    51: "PPPoE",
    105: "IEEE 802.11",
    119: "IEEE 802.11 with Prism",
    127: "IEEE 802.11 with radiotap",
    187: "Bluetooth",
    189: "USB of Linux",
    195: "IEEE 802.15.4",
    201: "Bluetooth with direction",
    220: "USB of Linux, padded",
    239: "nflog",
    249: "USBPcap",
    253: "netlink",
    254: "Bluetooth monitor",
}

TCP, UDP = 6, 17
FIN, SYN, RST, ACK = 1, 2, 4, 16
VLANS = (0x8100, 0x88A8, 0x9100)
IPV4, IPV6 = 0x0800, 0x86DD
EXTENSIONS = (0, 43, 60)  # hop by hop, routing, destination
FRAGMENT, AUTHENTICATION = 44, 51

OTHER, SHORT, MALFORMED, PIECE = "other", "short", "malformed", "piece"
SKIPPED = {
    OTHER: "neither TCP nor UDP over IP",
    SHORT: "cut before the end of their headers",
    MALFORMED: "lengths that contradict each other",
    PIECE: "IP fragments after the first",
}

_ports = struct.Struct("!HH").unpack_from
_tcp = struct.Struct("!IIBB").unpack_from
_u16 = struct.Struct("!H").unpack_from


class Packet(NamedTuple):
    protocol: int
    ends: bytes  # source and destination address, then source and destination port
    flags: int
    seq: int
    ack: int
    payload: int  # bytes


def link_name(link: int) -> str:
    return f"link type {link}" + (f" ({NAMES[link]})" if link in NAMES else "")


def parse(link: int, frame: bytes, length: int) -> Packet | str:
    """The packet, or which of SKIPPED it is. The link type is one of READ."""
    at, kind = _network(link, frame)
    if len(frame) <= at:
        return SHORT if length > len(frame) else OTHER
    version = frame[at] >> 4
    if version == 4 and kind in (0, IPV4):
        return _ipv4(frame, at, length)
    if version == 6 and kind in (0, IPV6):
        return _ipv6(frame, at, length)
    return MALFORMED if kind in (IPV4, IPV6) else OTHER


def _network(link: int, frame: bytes) -> tuple[int, int]:
    """Where the network's header begins, and its Ethernet type, 0 where the header tells."""
    if link == ETHERNET:
        at = 14
        if len(frame) < at:
            return at, 0
        kind = _u16(frame, 12)[0]
        while kind in VLANS and len(frame) >= at + 4:
            kind = _u16(frame, at + 2)[0]
            at += 4
        return at, kind
    if link == LINUX:
        return 16, _u16(frame, 14)[0] if len(frame) >= 16 else 0
    if link == LINUX2:
        return 20, _u16(frame)[0] if len(frame) >= 20 else 0
    return (4 if link in NULL else 0), 0


def _ipv4(frame: bytes, at: int, length: int) -> Packet | str:
    if len(frame) < at + 20:
        return SHORT
    header = 4 * (frame[at] & 15)
    total = _u16(frame, at + 2)[0] or length - at  # 0: segmented by the device, later
    if header < 20 or total < header:
        return MALFORMED
    protocol = frame[at + 9]
    if protocol not in (TCP, UDP):
        return OTHER
    if _u16(frame, at + 6)[0] & 0x1FFF:
        return PIECE
    return _transport(protocol, frame, at + header, frame[at + 12 : at + 20], total - header)


def _ipv6(frame: bytes, at: int, length: int) -> Packet | str:
    if len(frame) < at + 40:
        return SHORT
    left = _u16(frame, at + 4)[0] or length - at - 40
    ends = frame[at + 8 : at + 40]
    protocol = frame[at + 6]
    at += 40
    while protocol in EXTENSIONS or protocol in (FRAGMENT, AUTHENTICATION):
        if len(frame) < at + 8:
            return SHORT
        if protocol == FRAGMENT:
            size = 8
            if _u16(frame, at + 2)[0] & 0xFFF8:
                return PIECE
        elif protocol == AUTHENTICATION:
            size = 4 * (frame[at + 1] + 2)
        else:
            size = 8 * (frame[at + 1] + 1)
        protocol = frame[at]
        at += size
        left -= size
    if protocol not in (TCP, UDP):
        return OTHER
    return _transport(protocol, frame, at, ends, left)


def _transport(protocol: int, frame: bytes, at: int, addresses: bytes, left: int) -> Packet | str:
    if protocol == UDP:
        if left < 8:
            return MALFORMED
        if len(frame) < at + 8:
            return SHORT
        return Packet(UDP, addresses + frame[at : at + 4], 0, 0, 0, left - 8)
    if left < 20:
        return MALFORMED
    if len(frame) < at + 14:
        return SHORT
    seq, ack, offset, flags = _tcp(frame, at + 4)
    payload = left - 4 * (offset >> 4)
    if offset < 0x50 or payload < 0:
        return MALFORMED
    return Packet(TCP, addresses + frame[at : at + 4], flags, seq, ack, payload)


def reverse(ends: bytes) -> bytes:
    """The same two ends, as a packet in the other direction has them."""
    half = len(ends) // 2 - 2
    return ends[half : 2 * half] + ends[:half] + ends[-2:] + ends[-4:-2]


def ports(ends: bytes) -> tuple[int, int]:
    source, destination = _ports(ends, len(ends) - 4)
    return source, destination
