# SPDX-License-Identifier: MIT
"""UDP at a given rate, and who arrives when: two programs, each run in a namespace.

    udp.py send ADDRESS PORT PAYLOAD PACKETS PACKETS_PER_S FIRST    FIRST at once, then paced
    udp.py receive PORT FILE QUIET_S                                until nothing comes for so long

A packet carries its number and when it was sent; the receiver takes the kernel's time of arrival,
so that it does not matter when it gets to run itself. FILE: three 64-bit numbers a packet.
"""

import json
import os
import socket
import struct
import sys
import time
from array import array
from pathlib import Path

HEADER = struct.Struct("!QQ")
SO_TIMESTAMPNS = 35  # these three are not in Python's socket module
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
TIMESPEC = struct.Struct("qq")
BUFFER = 1 << 25
START_WITHIN_S = 20.0


def send(
    address: str, port: int, payload: int, packets: int, packets_per_s: float, first: int
) -> None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
    sock.connect((address, port))
    filling = bytes(payload - HEADER.size)
    start = time.monotonic()
    late = 0.0
    for number in range(packets):
        due = start + max(0, number - first) / packets_per_s
        ahead = due - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        late = max(late, time.monotonic() - due if number >= first else 0.0)
        sock.send(HEADER.pack(number, time.clock_gettime_ns(time.CLOCK_REALTIME)) + filling)
    print(json.dumps({"late_ms": 1e3 * late, "seconds": time.monotonic() - start}))


def receive(port: int, file: Path, quiet_s: float) -> None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.bind(("0.0.0.0", port))
    sock.settimeout(START_WITHIN_S)
    print("ready", flush=True)
    got = array("Q")
    while True:
        try:
            data, ancillary, _, _ = sock.recvmsg(65536, 64)
        except TimeoutError:
            break
        seconds, nanoseconds = TIMESPEC.unpack(ancillary[0][2])
        got.extend((*HEADER.unpack_from(data), seconds * 10**9 + nanoseconds))
        if len(got) == 3:
            sock.settimeout(quiet_s)
    with file.open("wb") as out:
        got.tofile(out)


if __name__ == "__main__":
    os.nice(-15)  # the link is measured, not who else runs
    if sys.argv[1] == "send":
        send(sys.argv[2], *map(int, sys.argv[3:6]), float(sys.argv[6]), int(sys.argv[7]))
    else:
        receive(int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]))
