# SPDX-License-Identifier: MIT
"""What a client does in a run: each actor is a thread of the client program with its connections.

An actor is its own description: `play.py` gets it as JSON. Those with `background` run until all
the others are done. Times are seconds since the scene began.
"""

import itertools
import math
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any, Literal

from experiments.workloads.exchange import Connection, CutShort, Request, read_stream
from experiments.workloads.pattern import start_of

BIN_S = 0.1
ENDLESS = 1 << 62
UP_PIECE = 16_384  # of an endless upload; the server replies to each
UP_AHEAD = 1024  # pieces without a reply at most
PACE_US = 10_000  # between the pieces of a bulk at a rate
Way = Literal["down", "up"]


@dataclass
class Scene:
    """What the actors of one program share."""

    address: str
    cc: str
    seed: int
    seconds: float
    began: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)
    to_hang_up: list[Connection] = field(default_factory=list)
    streams: "itertools.count[int]" = field(default_factory=itertools.count)
    done: dict[str, threading.Event] = field(default_factory=dict)  # by the actors' names

    def now(self) -> float:
        return time.monotonic() - self.began

    def end(self) -> None:
        """The background ends, also who waits for bytes."""
        self.over.set()
        for connection in self.to_hang_up:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def dial(self, port: int, mptcp: bool = False, cc: str = "", **more: Any) -> Connection:
        to = (self.address, port)
        return Connection(to, cc or self.cc, mptcp=mptcp, seconds=self.seconds, **more)

    def request(self, up: int = 0, down: int = 0, cc: str = "", **more: int) -> Request:
        """With streams of its own, so that no bytes of others pass for its."""
        return Request(
            cc or self.cc,
            up=up,
            up_start=start_of(self.seed, next(self.streams)),
            down=down,
            down_start=start_of(self.seed, next(self.streams)),
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class Actor:
    """`after`: the actors that must be done before this one begins, `after_s` later."""

    port: int
    background: bool = False
    after: tuple[str, ...] = ()
    after_s: float = 0.0

    def described(self) -> dict[str, Any]:
        kind = type(self)
        return {"do": f"{kind.__module__}.{kind.__name__}", **asdict(self)}

    def run(self, scene: Scene) -> dict[str, Any]:
        raise NotImplementedError


class Bins:
    """Bytes by the tenth of a second in which they came."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.bins: list[int] = []
        self.total = 0

    def add(self, size: int, at: float | None = None) -> None:
        self.total += size
        index = int((self.scene.now() if at is None else at) / BIN_S)
        self.bins += [0] * (index + 1 - len(self.bins))
        self.bins[index] += size

    def upto(self, total: int) -> None:
        self.add(total - self.total)


@dataclass(frozen=True, kw_only=True)
class Transfer(Actor):
    """One connection, one exchange: a download, an upload, or one after the other. `source`: as of
    a bulk."""

    up: int = 0
    down: int = 0
    mptcp: bool = False
    source: str = ""

    def run(self, scene: Scene) -> dict[str, Any]:
        bins = Bins(scene)
        with scene.dial(self.port, self.mptcp, source=self.source) as connection:
            times = connection.exchange(scene.request(self.up, self.down), bins.upto)
            return {
                "began_s": connection.began - scene.began,
                "connect_s": connection.connected - connection.began,
                "first_s": times.first - connection.began,
                "completion_s": times.last - connection.began,
                "subflows": connection.subflows() if self.mptcp else None,
                "bins": bins.bins,
            }


@dataclass(frozen=True, kw_only=True)
class Bulk(Actor):
    """Many bytes one way, until the others are done; how many came in each bin.

    `size` of them. Down: as fast as it goes or (`mbps`) at a rate that the server keeps. Up: whole
    pieces one behind the other, each counted by the clock of the server that has it, which is the
    client's: they share a kernel. `cc`: another congestion control than the run's. `source`: the
    address that it leaves from, and with it the last mile, where there are several.
    """

    way: Way = "down"
    cc: str = ""
    size: int = ENDLESS
    mbps: float = 0.0
    mptcp: bool = False
    source: str = ""
    background: bool = True

    def run(self, scene: Scene) -> dict[str, Any]:
        bins = Bins(scene)
        with scene.dial(self.port, self.mptcp, self.cc, source=self.source) as connection:
            scene.to_hang_up.append(connection)
            try:
                (self._down if self.way == "down" else self._up)(scene, connection, bins)
            except OSError:
                if not scene.over.is_set():
                    raise
        return {"bins": bins.bins, "total": bins.total}

    def _down(self, scene: Scene, connection: Connection, bins: Bins) -> None:
        piece = round(self.mbps * 1e6 / 8 * PACE_US / 1e6)
        pace = {"frame_bytes": piece, "interval_us": PACE_US} if piece else {}
        request = scene.request(down=self.size, cc=self.cc, **pace)
        connection.ask(request)
        connection.reply(request)
        came = read_stream(connection.sock, request.down, request.down_start, bins.upto)
        if came != request.down:
            raise CutShort(f"a bulk download ended after {came} bytes")

    def _up(self, scene: Scene, connection: Connection, bins: Bins) -> None:
        asked: Queue[Request] = Queue(UP_AHEAD)
        pieces = range(math.ceil(self.size / UP_PIECE))

        def write() -> None:
            with suppress(OSError):  # the reader meets the same, and tells
                for _ in pieces:
                    if scene.over.is_set():
                        return
                    request = scene.request(up=UP_PIECE, cc=self.cc)
                    asked.put(request)
                    connection.ask(request)

        threading.Thread(target=write, daemon=True).start()
        for _ in pieces:
            reply = connection.reply(asked.get(timeout=scene.seconds))
            bins.add(UP_PIECE, reply.clock_ns / 1e9 - scene.began)


@dataclass(frozen=True, kw_only=True)
class Objects(Actor):
    """A small object every so often: from its request (or connect()) to its last byte.

    `fresh`: each on a connection of its own, else all on one, which is open for `wait_s` before the
    first is asked for. None begins later than `seconds` after the first.
    """

    size: int = 4096
    count: int = 20
    wait_s: float = 0.0
    pause_s: float = 0.2
    seconds: float = 60.0
    way: Way = "down"
    fresh: bool = False
    mptcp: bool = False

    def run(self, scene: Scene) -> dict[str, Any]:
        kept = None if self.fresh else scene.dial(self.port, self.mptcp)
        time.sleep(self.wait_s)
        began, taken = scene.now(), []
        try:
            for _ in range(self.count):
                taken.append(self._one(scene, kept))
                if len(taken) == self.count or scene.now() - began > self.seconds:
                    break
                time.sleep(self.pause_s)
        finally:
            if kept is not None:
                kept.sock.close()
        return {"seconds": taken, "began_s": began, "ended_s": scene.now()}

    def _one(self, scene: Scene, kept: Connection | None) -> float:
        sizes = {self.way: self.size}
        if kept is not None:
            times = kept.exchange(scene.request(**sizes))
            return times.last - times.asked
        with scene.dial(self.port, self.mptcp) as connection:
            times = connection.exchange(scene.request(**sizes))
            return times.last - connection.began


@dataclass(frozen=True, kw_only=True)
class Video(Actor):
    """A stream at a constant rate: for each frame how long after it was due it had arrived."""

    frames: int = 100
    frame_bytes: int = 12_500
    interval_us: int = 40_000
    mptcp: bool = False

    def run(self, scene: Scene) -> dict[str, Any]:
        arrived: list[float] = []

        def seen(done: int) -> None:
            whole = done // self.frame_bytes
            arrived.extend([time.monotonic()] * (whole - len(arrived)))

        size = self.frames * self.frame_bytes
        pace = {"frame_bytes": self.frame_bytes, "interval_us": self.interval_us}
        request = scene.request(down=size, **pace)
        with scene.dial(self.port, self.mptcp) as connection:
            connection.ask(request)
            clock_s = connection.reply(request).clock_ns / 1e9
            came = read_stream(connection.sock, size, request.down_start, seen)
        if came != size:
            raise CutShort(f"a video ended after {came} of {size} bytes")
        due = (clock_s + n * self.interval_us / 1e6 for n in range(self.frames))
        return {"late_s": [at - then for at, then in zip(arrived, due, strict=True)]}


@dataclass(frozen=True, kw_only=True)
class Churn(Actor):
    """Many short connections, `parallel` of them at a time. `source`: as of a bulk."""

    count: int = 200
    parallel: int = 8
    up: int = 200
    down: int = 2000
    mptcp: bool = False
    source: str = ""

    def run(self, scene: Scene) -> dict[str, Any]:
        left = iter(range(self.count))
        taken: list[float] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                for _ in left:
                    with scene.dial(self.port, self.mptcp, source=self.source) as connection:
                        times = connection.exchange(scene.request(self.up, self.down))
                        taken.append(times.last - connection.began)
            except BaseException as error:
                failed.append(error)

        began = scene.now()
        threads = [threading.Thread(target=work, daemon=True) for _ in range(self.parallel)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        return {"seconds": taken, "took_s": scene.now() - began}


@dataclass(frozen=True, kw_only=True)
class Pause(Actor):
    """Nothing, for so long: where all others are in the background."""

    port: int = 0
    seconds: float = 1.0

    def run(self, scene: Scene) -> dict[str, Any]:
        time.sleep(self.seconds)
        return {}


@dataclass(frozen=True, kw_only=True)
class Until(Actor):
    """Nothing, until there is a file: the others are in the background and end with it."""

    port: int = 0
    path: str = ""

    def run(self, scene: Scene) -> dict[str, Any]:
        while not Path(self.path).exists():
            time.sleep(0.005)
        return {"ended_s": scene.now()}


@dataclass(frozen=True, kw_only=True)
class Wire(Actor):
    """What a device of this namespace carried, packets with their headers, by bins."""

    port: int = 0
    device: str = "client-eth0"
    background: bool = True

    def run(self, scene: Scene) -> dict[str, Any]:
        down, up = [], []
        first = last = self._bytes()
        while not scene.over.wait(BIN_S - scene.now() % BIN_S):
            now = self._bytes()
            down.append(now[0] - last[0])
            up.append(now[1] - last[1])
            last = now
        end = self._bytes()
        return {"down": down, "up": up, "total": [b - a for a, b in zip(first, end, strict=True)]}

    def _bytes(self) -> tuple[int, int]:
        for line in Path("/proc/self/net/dev").read_text().splitlines():
            name, _, counters = line.partition(":")
            if name.strip() == self.device:
                numbers = counters.split()
                return int(numbers[0]), int(numbers[8])
        raise OSError(f"no device {self.device} here")
