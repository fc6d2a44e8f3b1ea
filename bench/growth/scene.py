# SPDX-License-Identifier: MIT
"""The programs of a point: rp on the second core, each lp on the first."""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.growth.axes import Scene
from bench.programs import Program, Running, running
from bench.rivals import ENTRY_PORT, MIDDLE_PORT, SERVER_PORT, Place

AT = f"127.0.0.1:{MIDDLE_PORT}"
OFF = ("--socks", "off", "--redirect", "off")


def remote(scene: Scene, place: Place) -> Program:
    """With room for as many sessions of one address as there are."""
    most = str(max(64, scene.sessions))
    room = ("--max-sessions", most, "--max-sessions-each", most)
    argv = (place.tools["rp"], "--listen", AT, *room, str(scene.pipes))
    return Program("rp", argv, place.cores[1], port=MIDDLE_PORT)


def local(number: int, scene: Scene, place: Place) -> Program:
    forward = f"127.0.0.1:{ENTRY_PORT + number}:127.0.0.1:{SERVER_PORT}"
    argv = (place.tools["lp"], *OFF, "--forward", forward, AT, str(scene.pipes))
    up = "1 pipe to" if scene.pipes == 1 else f"{scene.pipes} pipes to"
    return Program(f"lp{number}", argv, place.cores[0], says=up)


@contextmanager
def programs(scene: Scene, place: Place, locals_: int) -> Iterator[tuple[Running, list[Running]]]:
    """rp, and so many of lp."""
    with (
        running([remote(scene, place)], place.directory) as rp,
        running([local(n, scene, place) for n in range(locals_)], place.directory) as lps,
    ):
        yield rp[0], lps
