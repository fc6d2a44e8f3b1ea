# SPDX-License-Identifier: MIT
"""Level 4: a browser-like mix of everything, drawn by chance from a seed."""

from __future__ import annotations

from .. import steps, wire
from ..failure import Failure
from ..lab import Lab
from ..lp import Conn, LocalProxy
from ..registry import check
from ..server import ClosedPort, Peer, Server
from ..steps import MIB
from ..stream import Pattern


@check(4, "browsing", seconds=45)
def browsing(lab: Lab) -> str:
    """A browser-like mix: pages, failures, closes in the middle, 24 at a time"""
    lp = steps.start(lab, 4)
    mix = Mix(lab, lp, 300)
    lab.until(mix.step, "all requests to end", 40, progress=mix.state)
    steps.works(lab, lp)
    return mix.summary()


class Mix:
    """Requests of all kinds, the next one started as soon as one has ended."""

    KINDS = ("page", "page", "page", "page", "refused", "abandoned", "cut off", "posted")

    def __init__(self, lab: Lab, lp: LocalProxy, count: int) -> None:
        self.lab = lab
        self.lp = lp
        self.left = count
        self.active: list[tuple[Conn, str]] = []
        self.count = dict.fromkeys(self.KINDS, 0)
        self.server = Server(lab, self._serve)
        self.closed = ClosedPort(lab)
        self.kind_of: dict[Conn, str] = {}
        self.size_of: dict[Conn, int] = {}

    def _serve(self, peer: Peer) -> None:
        kind, pattern = self.kind_of[peer.conn], self._pattern(peer.conn)
        if kind == "page" or kind == "abandoned":
            peer.stream(pattern, then=peer.close if kind == "page" else None)
        elif kind == "cut off":
            peer.stream(pattern, then=peer.reset)
        elif kind == "posted":
            peer.inbox.expect(pattern)

    def _pattern(self, conn: Conn) -> Pattern:
        return Pattern(conn.id, self.size_of[conn])

    def state(self) -> tuple[int, int]:
        return self.left, sum(len(conn.inbox) for conn, _kind in self.active)

    def step(self) -> bool:
        """Start what there is room for, take away what has ended; true when all is done."""
        self.active = [(conn, kind) for conn, kind in self.active if not self._ended(conn, kind)]
        while len(self.active) < 24 and self.left:
            self.left -= 1
            self._begin(self.lab.random.choice(self.KINDS))
        return not self.active

    def _begin(self, kind: str) -> None:
        conn = self.lp.dial(self.closed if kind == "refused" else self.server)
        self.kind_of[conn] = kind
        self.size_of[conn] = int(min(2 * MIB, self.lab.random.lognormvariate(9.5, 1.5))) + 1
        if kind != "posted":
            conn.inbox.expect(self._pattern(conn))
        conn.syn()
        if kind == "posted":
            conn.start_upload(self._pattern(conn))
        self.active.append((conn, kind))
        self.count[kind] += 1

    def _ended(self, conn: Conn, kind: str) -> bool:
        if kind == "posted" and not conn.ended_by_lp and conn not in self.lp.uploads:
            conn.fin()
        if kind == "abandoned" and not conn.ended_by_lp and len(conn.inbox):
            conn.fin(self.lab.random.choice((wire.BY_FIN, wire.BY_RESET)))
        if kind in ("posted", "abandoned"):
            return bool(conn.peer and conn.peer.ended and self._whole(conn, kind))
        return conn.over and self._whole(conn, kind)

    def _whole(self, conn: Conn, kind: str) -> bool:
        if kind == "page" and not (conn.inbox.complete and conn.reason == wire.BY_FIN):
            raise Failure(
                f"{conn}: {len(conn.inbox)} of {self.size_of[conn]} bytes came, then FIN "
                f"0x{conn.reason:02x}"
            )
        if kind == "posted" and not conn.peer.inbox.complete:
            raise Failure(
                f"{conn}: its server got {len(conn.peer.inbox)} of {self.size_of[conn]} bytes"
            )
        if kind in ("refused", "cut off") and conn.reason != wire.BY_RESET:
            raise Failure(f"{conn} was {kind}, yet RP's FIN says 0x{conn.reason:02x}")
        if conn.peer and conn.peer.eof:
            conn.peer.close()
        return True

    def summary(self) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in self.count.items())
