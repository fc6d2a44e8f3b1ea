# SPDX-License-Identifier: MIT
"""UDP at a given rate, and who arrives when: two programs, each run in a namespace.

    paced.py send ADDRESS PORT PAYLOAD PACKETS PACKETS_PER_S FIRST  FIRST at once, then paced; it
                                                    stays until its input ends
    paced.py receive PORT FILE QUIET_S                              until nothing comes for so long

A packet carries its number and when it was sent. The receiver takes the kernel's time of arrival,
so that it does not matter when it gets to run itself, and leaves packets in the kernel until it is
quiet, so that it takes no time from the sender. A Python that ends keeps an emulated processor from
everything else for 30 ms: the sender waits until what it sent has arrived. FILE: three 64-bit
numbers a packet.
"""

import json
import os
import socket
import struct
import sys
import time
from array import array
from contextlib import suppress
from pathlib import Path

PACED = Path(__file__).resolve()
HEADER = struct.Struct("!QQ")
SO_TIMESTAMPNS = 35  # these four are not in Python's socket module
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
SO_MEMINFO = 55
MEMORY = struct.Struct("=9I")  # what waits, and for how much there is room; and more
TIMESPEC = struct.Struct("qq")
BUFFER = 1 << 25
START_WITHIN_S = 20.0
LOOK_S = 0.05


def send(
    address: str, port: int, payload: int, packets: int, packets_per_s: float, first: int
) -> None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
    sock.connect((address, port))
    packet = bytearray(payload)
    start = time.monotonic()
    late = 0.0
    for number in range(packets):
        if number >= first:
            due = start + (number - first) / packets_per_s
            now = time.monotonic()
            if now < due:
                time.sleep(due - now)
                now = time.monotonic()
            late = max(late, now - due)
        HEADER.pack_into(packet, 0, number, time.clock_gettime_ns(time.CLOCK_REALTIME))
        sock.send(packet)
    print(json.dumps({"late_ms": 1e3 * late, "seconds": time.monotonic() - start}), flush=True)
    sys.stdin.read()


def receive(port: int, file: Path, quiet_s: float) -> None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.bind(("0.0.0.0", port))
    sock.settimeout(START_WITHIN_S)
    print("ready", flush=True)
    got = array("Q")
    with suppress(TimeoutError):
        sock.recv(1, socket.MSG_PEEK)
        sock.setblocking(False)
        wait_until_quiet(sock, quiet_s, got)
        fetch(sock, got)
    with file.open("wb") as out:
        got.tofile(out)


def wait_until_quiet(sock: socket.socket, quiet_s: float, got: "array[int]") -> None:
    held, since = -1, time.monotonic()
    while time.monotonic() - since < quiet_s:
        before = held
        held, room, *_ = MEMORY.unpack(sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, MEMORY.size))
        if held > room // 2:
            fetch(sock, got)
        if held != before:
            since = time.monotonic()
        time.sleep(LOOK_S)


def fetch(sock: socket.socket, got: "array[int]") -> None:
    """What has come so far."""
    with suppress(BlockingIOError):
        while True:
            data, ancillary, _, _ = sock.recvmsg(65536, 64)
            seconds, nanoseconds = TIMESPEC.unpack(ancillary[0][2])
            got.extend((*HEADER.unpack_from(data), seconds * 10**9 + nanoseconds))


if __name__ == "__main__":
    os.nice(-15)  # the link is measured, not who else runs
    if sys.argv[1] == "send":
        send(sys.argv[2], *map(int, sys.argv[3:6]), float(sys.argv[6]), int(sys.argv[7]))
    else:
        receive(int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]))
