# SPDX-License-Identifier: MIT
"""Two namespaces with linkem between them."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.net.linkem import Linkem, Value, command_line, linkem
from tests.net.probe import Arrival, receiving, send
from tests.relay.netns import Namespace
from tests.relay.programs import SANITIZER_REPORT, binary
from tests.relay.waiting import until

ADDRESS = ("10.78.0.1", "10.78.0.2")
DEVICE = ("linkem-a", "linkem-b")
PORT = 7000
FULL = 1500


@dataclass(frozen=True)
class Bed:
    """The link, its two ends, and a UDP socket bound at each."""

    link: Linkem
    ends: tuple[Namespace, Namespace]
    udp: tuple[socket.socket, socket.socket]

    def to(self, direction: str) -> tuple[socket.socket, socket.socket, tuple[str, int]]:
        """Who sends, who receives, and where to."""
        far = 1 if direction == "ab" else 0
        return self.udp[1 - far], self.udp[far], (ADDRESS[far], PORT)

    def settle(self, direction: str) -> None:
        """Waits until nothing is under way in that direction."""

        def empty() -> bool:
            there = self.link.truth()[direction]
            now = there["now"]
            return now["queue_packets"] + below(there) + now["in_flight"] == 0

        until(f"{direction} to be empty", empty, seconds=20)


@contextmanager
def bed(
    ends: tuple[Namespace, Namespace],
    folder: Path,
    *,
    ab: Mapping[str, Value] | None = None,
    ba: Mapping[str, Value] | None = None,
    seed: int = 1,
    options: Sequence[str | Path] = (),
    asan: bool = False,
) -> Iterator[Bed]:
    """Until the block ends; linkem must then end well and without a sanitizer's report."""
    argv = command_line(
        binary("linkem", asan=asan),
        *(end.pid for end in ends),
        ab=ab,
        ba=ba,
        seed=seed,
        options=options,
    )
    with linkem(argv, folder) as link:
        sockets = []
        for end, device, address in zip(ends, DEVICE, ADDRESS, strict=True):
            end.ip("address", "add", f"{address}/24", "dev", device)
            sock = end.open_socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind((address, PORT))
            sockets.append(sock)
        # ARP would be the first thing to be measured.
        for i in range(2):
            mac = link.ready["ab"[1 - i]]["mac"]
            ends[i].ip("neigh", "replace", ADDRESS[1 - i], "lladdr", mac, "dev", DEVICE[i])
        try:
            yield Bed(link, ends, (sockets[0], sockets[1]))
        finally:
            for sock in sockets:
                sock.close()
    assert not SANITIZER_REPORT.search(link.log), link.log


def conserved(direction: dict[str, dict[str, int]]) -> bool:
    """Every packet that came is accounted for."""
    counters, now = direction["counters"], direction["now"]
    came = counters["in_packets"] + counters["duplicated_packets"]
    gone = sum(
        counters[f"{name}_packets"]
        for name in (
            *("out", "lost", "dropped_queue", "dropped_codel"),
            *("dropped_memory", "dropped_device"),
        )
    )
    return came == gone + now["queue_packets"] + below(direction) + now["in_flight"]


def below(direction: dict[str, dict[str, int]]) -> int:
    """Packets in the firmware of a radio link."""
    return direction["radio"]["firmware_packets"] if direction["radio"] else 0


def measure(
    lab: Bed, direction: str, count: int, gap_s: float, ip_bytes: int = FULL
) -> list[Arrival]:
    """What arrives of `count` packets, in the order in which it does."""
    sender, receiver, to = lab.to(direction)
    with receiving(receiver) as got:
        send(sender, to, ip_bytes, count, gap_s)
        lab.settle(direction)
    return got.arrivals


def tcp_goodput_mbps(lab: Bed, warm_s: float, seconds: float) -> float:
    """Of one cubic connection from a to b, measured at the receiving application."""
    listener = lab.ends[1].open_socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((ADDRESS[1], PORT))
    listener.listen()
    sender = lab.ends[0].open_socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    sender.settimeout(10)
    sender.connect((ADDRESS[1], PORT))
    receiver, _ = listener.accept()
    stop = threading.Event()

    def push() -> None:
        block = bytes(65536)
        while not stop.is_set():
            try:
                sender.send(block)
            except OSError:
                return

    pusher = threading.Thread(target=push)
    pusher.start()
    try:
        read_for(receiver, warm_s)
        received, took_s = read_for(receiver, seconds)
    finally:
        stop.set()
        receiver.close()
        with suppress(OSError):  # the receiver's reset may have come first
            sender.shutdown(socket.SHUT_RDWR)
        pusher.join(timeout=10)
        sender.close()
        listener.close()
    return received * 8 / took_s / 1e6


def read_for(sock: socket.socket, seconds: float) -> tuple[int, float]:
    start = time.monotonic()
    total = 0
    while (took := time.monotonic() - start) < seconds:
        total += len(sock.recv(65536))
    return total, took
