# SPDX-License-Identifier: MIT
"""Small scenes on pipes, each behind a local proxy of its own, all in one capture."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

Play = Callable[["Scene"], None]
Rows = list[tuple[int, tshark.Message]]
IN_ORDER, EARLY, LATE, LATE_RESENT, COPY, AFTER, UNPLACED, TOO_FAR = map(str, range(1, 9))


@dataclass
class Scene:
    """Some pipes; time goes on by a millisecond with every message sent."""

    capture: Capture
    address: str
    clock_us: int
    pipes: list[TcpStream] = field(default_factory=list)
    port: int = 6000
    next_port: int = 50_000  # of no protocol: 40,000 is SAP's to a newer Wireshark

    def open(self, count: int, *, handshake: bool = True, port: int | None = None) -> None:
        """New pipes; without the handshake the capture begins in their middle."""
        self.pipes = []
        for _ in range(count):
            client = Endpoint(self.address, self.next_port)
            tcp = TcpStream(self.capture, client, Endpoint("10.9.0.1", port or self.port))
            self.next_port += 1
            if handshake:
                tcp.open(self.tick())
            self.pipes.append(tcp)

    def tick(self, ms: float = 1) -> int:
        self.clock_us += round(ms * 1000)
        return self.clock_us

    def up(self, pipe: int, *raw: bytes) -> None:
        self.pipes[pipe].up(self.tick(), b"".join(raw))

    def down(self, pipe: int, *raw: bytes) -> None:
        self.pipes[pipe].down(self.tick(), b"".join(raw))


SCENES: dict[str, Play] = {}


def scene(play: Play) -> Play:
    SCENES[play.__name__] = play
    return play


def play_all(scenes: dict[str, Play]) -> tuple[Capture, dict[str, str]]:
    """The capture of all scenes, and their names by the address of their local proxy."""
    capture, names = Capture(), {}
    for number, (name, play) in enumerate(scenes.items()):
        address = f"10.2.{number >> 8}.{number & 255}"
        names[address] = name
        play(Scene(capture, address, number * 60_000_000))
    return capture, names


def dissected(scenes: dict[str, Play], path: Path) -> dict[str, Rows]:
    """The messages of each scene, each with its frame; the capture is written to `path`."""
    capture, names = play_all(scenes)
    capture.write(path)
    found: dict[str, Rows] = {name: [] for name in names.values()}
    for frame in tshark.frames(path, "-2", "-Y", "tm3", only="ip tm3"):
        ip = frame.layers["ip"]
        name = names.get(ip["ip.src"]) or names[ip["ip.dst"]]
        found[name] += [(frame.number, message) for message in frame.messages]
    return found


def column(rows: Rows, name: str) -> list[Any]:
    return [message.get(f"tm3.{name}") for _, message in rows]


def odd(rows: Rows) -> list[list[str]]:
    return [tshark.experts(message) for _, message in rows]


def owners(rows: Rows) -> list[int]:
    """Which connection each message is of, counted from that of the first."""
    first = int(rows[0][1]["tm3.stream"])
    return [int(index) - first for index in column(rows, "stream")]
