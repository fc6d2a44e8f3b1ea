# SPDX-License-Identifier: MIT
"""What datagrams cost both proxies beside a connection's bytes at the same pace.

    build/venv/bin/python -m tests.relay.tproxy_cost

Up one flow at 100 Mbit/s, in bursts of 50 packets of 1,200 bytes, in two namespaces of its own
(root): lp and the program in one, rp and the server in the other. `--rounds N` (7), each of all
ways in an order of its own, `--seconds S` (4) each:

tcp       a write for each burst, by --forward
forward   datagrams, by --forward udp:
tproxy    datagrams, by --tproxy and what `tm3ctl --udp` sets up
"""

import argparse
import random
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from experiments.workloads.siege import cpu_s
from tests.relay.netns import Namespace, two_on_a_link
from tests.relay.programs import Program
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.tproxied import MAY, RP, SERVERS, prepare, tm3ctl

SIZE, BURST, RATE = 1200, 50, 100e6
PORT, FORWARDED = 7000, 7100
SERVER = SERVERS["IPv4"]
BUFFER = 4 << 20
FIRST_S, QUIET_S = 10.0, 0.5  # until something comes; then nothing more does
WAYS = {
    "tcp": (socket.SOCK_STREAM, ("127.0.0.1", FORWARDED)),
    "forward": (socket.SOCK_DGRAM, ("127.0.0.1", FORWARDED)),
    "tproxy": (socket.SOCK_DGRAM, (SERVER, PORT)),
}


@dataclass(frozen=True)
class Cost:
    us: float  # of the processor, for a packet, both proxies together
    lost: float  # of all packets


@contextmanager
def counted(server: socket.socket) -> Iterator[Callable[[], int]]:
    """Bytes that come there, until nothing more does."""
    came = [0]

    def count() -> None:
        sock = server if server.type == socket.SOCK_DGRAM else server.accept()[0]
        sock.settimeout(FIRST_S)
        buffer = bytearray(1 << 16)
        try:
            block = sock.recv_into(buffer)
            sock.settimeout(QUIET_S)
            while block:
                came[0] += block
                block = sock.recv_into(buffer)
        except TimeoutError:
            pass

    thread = Thread(target=count, daemon=True)
    thread.start()

    def all_of_them() -> int:
        thread.join()
        return came[0]

    yield all_of_them


def say(sock: socket.socket, packets: int) -> None:
    """At the pace; a connection has a burst in one write."""
    packet, began = bytes(SIZE), time.monotonic()
    for at in range(0, packets, BURST):
        time.sleep(max(0.0, began + at * SIZE * 8 / RATE - time.monotonic()))
        n = min(BURST, packets - at)
        if sock.type == socket.SOCK_STREAM:
            sock.sendall(packet * n)
        else:
            for _ in range(n):
                sock.send(packet)


def cost_of(
    way: str, two: tuple[Namespace, Namespace], proxies: list[Program], packets: int
) -> Cost:
    near, far = two
    kind, to = WAYS[way]
    with ExitStack() as stack:
        server = stack.enter_context(far.open_socket(kind=kind))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        server.bind((SERVER, PORT))
        if kind == socket.SOCK_STREAM:
            server.listen()
        came = stack.enter_context(counted(server))
        sock = stack.enter_context(near.open_socket(kind=kind))
        sock.connect(to)
        before = sum(cpu_s(it.pid) for it in proxies)
        say(sock, packets)
        got = came()
        used = sum(cpu_s(it.pid) for it in proxies) - before
    return Cost(used / packets * 1e6, 1 - got / (packets * SIZE))


def all_costs(rounds: int, seconds: float) -> dict[str, list[Cost]]:
    packets = round(seconds * RATE / 8 / SIZE)
    found: dict[str, list[Cost]] = {way: [] for way in WAYS}
    forwards = (f"{FORWARDED}:{SERVER}:{PORT}", f"udp:{FORWARDED}:{SERVER}:{PORT}")
    options = [word for text in forwards for word in ("--forward", text)]
    with ExitStack() as stack:
        two = stack.enter_context(two_on_a_link())
        prepare(two)
        tmp = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rp = stack.enter_context(remote_proxy(two[1], tmp, *MAY, asan=False))
        words = ("--tproxy", "6003", *options)
        lp = stack.enter_context(local_proxy(two[0], tmp, *words, to=RP, asan=False))
        lp.expect("4 pipes to .*:6010 are up")
        tm3ctl(two[0], "--udp", RP, "wire-l", str(PORT))
        for _ in range(rounds):
            for way in random.sample(list(WAYS), len(WAYS)):
                found[way].append(cost_of(way, two, [rp, lp], packets))
    return found


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    found = all_costs(options.rounds, options.seconds)
    for way, costs in found.items():
        ratios = [it.us / tcp.us for it, tcp in zip(costs, found["tcp"], strict=True)]
        print(
            f"{way:8} {spread([it.us for it in costs])} µs a packet, "
            f"{spread(ratios)} of tcp's, {spread([100 * it.lost for it in costs])} % lost"
        )


if __name__ == "__main__":
    main()
