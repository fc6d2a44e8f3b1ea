# SPDX-License-Identifier: MIT
"""What a page that watches takes of the proxies' throughput.

    build/venv/bin/python -m tests.experiments.watch_cost

Bytes from one program to another over rp, lp and 8 pipes, as fast as they go, in a namespace of
its own (root): by turns with and without a reader of what `tm3lab watch` sends to a page, which is
served as `run --watch` serves it, of statistics that are written every 0.1 s in either
case. `--pairs N` (15) of `--seconds S` (3) each, whose order is drawn.
"""

import argparse
import random
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from urllib.request import urlopen

from base.shell import until
from bench.stats import Spread
from experiments.watch import beside
from experiments.workloads.siege import cpu_s
from tests.experiments.watch_server import ANY
from tests.relay.netns import Namespace, namespace
from tests.relay.proxies import local_proxy, remote_proxy

PORT, FORWARDED = 7000, 7100
CHUNK = 1 << 20
SETTLES_S = 0.5


def send(server: socket.socket) -> None:
    """To each that connects, for as long as it takes it."""
    while True:
        client, _ = server.accept()
        with client:
            try:
                while True:
                    client.sendall(bytes(CHUNK))
            except OSError:
                pass


def bytes_a_second(inside: Namespace, seconds: float) -> float:
    buffer, came = bytearray(CHUNK), 0
    with inside.connect(("127.0.0.1", FORWARDED)) as client:
        begins = time.monotonic() + SETTLES_S
        while time.monotonic() < begins:
            client.recv_into(buffer)
        while time.monotonic() < begins + seconds:
            came += client.recv_into(buffer)
        return came / (time.monotonic() - begins)


@contextmanager
def reader(url: str) -> Iterator[list[int]]:
    """A page without a picture: it takes all events, and counts their bytes."""
    got, over = [0], Event()

    def read() -> None:
        with urlopen(f"{url}events", timeout=10) as events:
            while not over.is_set():
                got[0] += len(events.read1(CHUNK))

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        yield got
    finally:
        over.set()
        thread.join()


@contextmanager
def page(folder: Path) -> Iterator[tuple[str, int]]:
    """The address, and who serves it."""
    place = beside.found(ANY)
    with beside.beside(folder, place) as pid:
        until("the page", lambda: answers(place))
        yield f"http://{place[0]}:{place[1]}/", pid


def answers(place: tuple[str, int]) -> bool:
    with socket.socket() as client:
        return client.connect_ex(place) == 0


def pairs(count: int, seconds: float) -> tuple[list[float], list[float], list[float]]:
    """Rates with and without a page, and what serving it took of a core."""
    watched, alone, served = [], [], []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        inside = stack.enter_context(namespace("watched"))
        server = stack.enter_context(inside.open_socket())
        server.bind(("127.0.0.1", PORT))
        server.listen()
        Thread(target=send, args=(server,), daemon=True).start()
        for who in ("rp", "lp"):
            words = ["--stats", str(folder / f"{who}.stats.jsonl"), "--stats-interval", "0.1"]
            more = ["--forward", f"{FORWARDED}:127.0.0.1:{PORT}"] if who == "lp" else []
            proxy = local_proxy if who == "lp" else remote_proxy
            stack.enter_context(proxy(inside, folder, *words, *more, pipes=8, asan=False))
        url, pid = stack.enter_context(page(folder))
        for _ in range(count):
            for with_page in random.sample((True, False), 2):
                if not with_page:
                    alone.append(bytes_a_second(inside, seconds))
                    continue
                with reader(url) as got:
                    before, began = cpu_s(pid), time.monotonic()
                    watched.append(bytes_a_second(inside, seconds))
                    served.append((cpu_s(pid) - before) / (time.monotonic() - began))
                assert got[0], "the page was sent nothing"
    return watched, alone, served


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    watched, alone, served = pairs(options.pairs, options.seconds)
    ratio = Spread.of([a / b for a, b in zip(watched, alone, strict=True)])
    assert ratio
    print(
        f"throughput with a page, to that without: {ratio.median:.3f} "
        f"({ratio.low:.3f} to {ratio.high:.3f}), {options.pairs} pairs at "
        f"{statistics.median(alone) / 1e9:.2f} GB/s; serving it took "
        f"{100 * statistics.median(served):.1f} % of a core"
    )


if __name__ == "__main__":
    main()
