# SPDX-License-Identifier: MIT
"""Attacks with a HELLO of a friend's that was read on its way: without a key nothing hides it."""

import socket
import struct
import time
from collections.abc import Iterator

from base.shell import run
from experiments.workloads.attacks.attacker import Attacker, Crowd
from experiments.workloads.attacks.messages import HEADER, HELLO

WAITS_S = 10.0
AT_ONCE = 200
NETWORK = "127.8.0"
HELLO_BEGINS = HEADER.pack(0, 0, HEADER.size + HELLO.size) + b"\1"
INCARNATION_AT = HEADER.size + 24
INCARNATION = struct.Struct("<I")
STATUS_AT = HEADER.size + 6  # of WELCOME
ADMITTED = (0, 1)  # a session has begun, or goes on
ETH_P_IP = 0x0800


def replayed_hello(it: Attacker) -> None:
    """To the byte, and as the next incarnation of that pipe would say it, from elsewhere."""
    said = _overheard(it)
    (incarnation,) = INCARNATION.unpack_from(said, INCARNATION_AT)
    later = bytearray(said)
    INCARNATION.pack_into(later, INCARNATION_AT, incarnation + 1)

    def heard(answer: bytes) -> None:
        if len(answer) > STATUS_AT and answer[STATUS_AT] in ADMITTED:
            it.counts["got in"] += 1

    def say(number: int, sock: socket.socket) -> None:
        it.send(sock, bytes(later) if number % 2 else said)

    crowd = Crowd(it, AT_ONCE, heard)
    it.begin()
    crowd.flood(NETWORK, lambda _: it.extended, say)
    crowd.close()


def _overheard(it: Attacker) -> bytes:
    """A pipe of the friend's is reset, so that its lp dials again and says who it is."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP)) as wire:
        wire.settimeout(0.5)
        run(["ss", "-K", "state", "established", "sport", "=", f":{it.extended}"])
        until = time.monotonic() + WAITS_S
        while time.monotonic() < until:
            for payload in _payloads(wire, it.extended):
                if payload.startswith(HELLO_BEGINS):
                    return payload[: HEADER.size + HELLO.size]
    raise SystemExit("no HELLO was heard: there is no friend without a key, or ss -K does nothing")


def _payloads(wire: socket.socket, port: int) -> Iterator[bytes]:
    """Of the next packet, if it is TCP's and goes to that port."""
    try:
        packet = wire.recv(65536)
    except TimeoutError:
        return
    at = 4 * (packet[0] & 15)
    if packet[9] == socket.IPPROTO_TCP and packet[at + 2 : at + 4] == port.to_bytes(2, "big"):
        yield packet[at + 4 * (packet[at + 12] >> 4) :]
