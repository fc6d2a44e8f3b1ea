# SPDX-License-Identifier: MIT
"""Actors that talk in datagrams: a flow of packets at a rate, and DNS queries.

`entry`: how they come to lp, see association.py. What is lost stays lost, but a query is asked
again.
"""

import threading
import time
from dataclasses import dataclass
from typing import Any

from experiments.workloads.actors import Actor, Scene
from experiments.workloads.association import Association, Entry
from experiments.workloads.datagrams import Packet, query, resolved
from experiments.workloads.exchange import CutShort
from experiments.workloads.pattern import WrongByte, start_of

DRAIN_S = 3.0  # after which what has not come is lost: longer than any queue of the presets
AGAIN_S = 1.0  # after which a query is asked again
TRIES = 5


@dataclass(frozen=True, kw_only=True)
class Flow(Actor):
    """A packet of `size` bytes `rate` times a second, each sent back by the server at once: as many
    go one way as the other. Of each that came back, how long it took to the server and back."""

    size: int = 100
    rate: float = 60.0
    seconds: float = 1.0
    entry: Entry = "none"

    def run(self, scene: Scene) -> dict[str, Any]:
        start = start_of(scene.seed, next(scene.streams))
        count = round(self.rate * self.seconds)
        to = (scene.address, self.port)
        with Association(to, entry=self.entry, seconds=scene.seconds) as sock:
            failed: list[OSError] = []
            words = sock, start, count, failed
            writer = threading.Thread(target=self._send, args=words, daemon=True)
            began = scene.now()
            writer.start()
            came = self._receive(sock, start, count)
            writer.join()
        if failed:
            raise failed[0]
        if not came:
            raise CutShort(f"none of {count} packets came back")
        return {
            "sent": count,
            "began_s": began,
            "ended_s": began + self.seconds,
            "up_s": [(packet.came_ns - packet.sent_ns) / 1e9 for packet, _ in came.values()],
            "down_s": [(at - packet.came_ns) / 1e9 for packet, at in came.values()],
            "took_s": [(at - packet.sent_ns) / 1e9 for packet, at in came.values()],
        }

    def _send(self, sock: Association, start: int, count: int, failed: list[OSError]) -> None:
        """By the clock, so that one that was late does not delay all that follow."""
        began = time.monotonic()
        try:
            for number in range(count):
                time.sleep(max(0.0, began + number / self.rate - time.monotonic()))
                sock.send(Packet(number, time.monotonic_ns()).packed(start, self.size))
        except OSError as error:
            failed.append(error)

    def _receive(self, sock: Association, start: int, count: int) -> dict[int, tuple[Packet, int]]:
        """By number: a network may deliver one twice."""
        came: dict[int, tuple[Packet, int]] = {}
        deadline = time.monotonic() + self.seconds + DRAIN_S
        while len(came) < count and time.monotonic() < deadline:
            try:
                data = sock.receive(deadline - time.monotonic())
            except TimeoutError:
                break
            at = time.monotonic_ns()
            packet = Packet.parsed(data, start, self.size)
            came.setdefault(packet.number, (packet, at))
        return came


@dataclass(frozen=True, kw_only=True)
class Queries(Actor):
    """A DNS query every so often for so long, each from a socket of its own: by SOCKS5, from
    an association of its own, whose making counts. The next one waits for the answer, or until this
    one is given up."""

    every_s: float = 0.2
    seconds: float = 1.0
    entry: Entry = "none"

    def run(self, scene: Scene) -> dict[str, Any]:
        taken: list[float] = []
        again = unanswered = 0
        began = due = time.monotonic()
        while due < began + self.seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            asked = time.monotonic()
            tries = self._ask(scene, len(taken))
            unanswered += tries is None
            again += (tries or TRIES) - 1
            taken.append(time.monotonic() - asked)
            due = max(due + self.every_s, time.monotonic())
        if unanswered == len(taken):
            raise CutShort(f"none of {unanswered} queries was answered in {TRIES} tries")
        return {"seconds": taken, "again": again, "unanswered": unanswered}

    def _ask(self, scene: Scene, number: int) -> int | None:
        """How often it was asked until there was an answer; None: there is none."""
        to, asks = (scene.address, self.port), query(number)
        with Association(to, entry=self.entry, seconds=scene.seconds) as sock:
            for tried in range(1, TRIES + 1):
                sock.send(asks)
                try:
                    answer = sock.receive(AGAIN_S)
                except TimeoutError:
                    continue
                if answer != resolved(asks):
                    raise WrongByte(f"the answer to query {number} is {answer.hex()}")
                return tried
        return None
