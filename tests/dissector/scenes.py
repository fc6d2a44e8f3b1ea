# SPDX-License-Identifier: MIT
"""Small scenes on pipes, each behind a local proxy of its own, all in one capture."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.dissector.packets import Capture, Endpoint, TcpStream

Play = Callable[["Scene"], None]


@dataclass
class Scene:
    """Some pipes; time goes on by a millisecond with every message sent."""

    capture: Capture
    address: str
    clock_us: int
    pipes: list[TcpStream] = field(default_factory=list)
    port: int = 6000
    next_port: int = 40_000

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
