# SPDX-License-Identifier: MIT
"""Level 3: up to 256 connections at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable

from .. import steps, wire
from ..failure import Failure
from ..lab import Lab
from ..lp import Conn, LocalProxy
from ..registry import check
from ..server import Peer, Server, SilentServer
from ..steps import KIB, MIB, TEXT
from ..stream import Pattern


@check(3, "two-at-once")
def two_at_once(lab: Lab) -> str:
    """Two connections with their messages in turn: each has its own numbers"""
    lp = steps.start(lab, 4)
    server = steps.echo_server(lab)
    one, two = lp.dial(server).syn(), lp.dial(server).syn()
    for turn in range(20):
        steps.echoes(lab, one, b"one %d " % turn)
        steps.echoes(lab, two, b"number two %d " % turn)
    steps.lp_closes(lab, one)
    steps.echoes(lab, two, b"still here")
    steps.lp_closes(lab, two)
    return "20 echoes each, and one outlives the other"


def many(lab: Lab, count: int, seconds: float) -> str:
    """So many connections open at once, each with data both ways, then closed by either end."""
    lp = steps.start(lab, 4)
    server = steps.echo_server(lab)
    conns = [lp.dial(server).syn() for _ in range(count)]
    _all(lab, conns, lambda conn: conn.peer, "to be connected", seconds)
    for word in (b"first words of %d", b" and the last of %d"):
        due = {conn: bytes(conn.inbox.data) + word % conn.id for conn in conns}
        for conn in conns:
            conn.data(word % conn.id)
        _all(lab, conns, lambda c, d=due: c.inbox.same_as(d[c]), "to get its echo", seconds)
    for conn in conns[::2]:
        conn.fin()
    for conn in conns[1::2]:
        steps.connected(lab, conn).close()
    _all(lab, conns[::2], lambda c: c.peer and c.peer.ended, "to end at its server", seconds)
    _all(lab, conns[1::2], lambda c: c.over, "to get RP's FIN", seconds)
    wrong = [conn for conn in conns[1::2] if conn.reason != wire.BY_FIN]
    if wrong:
        raise Failure(f"{wrong[0]}: RP's FIN says 0x{wrong[0].reason:02x}, not 0x88")
    return f"{count} open at once, two echoes on each, half ended by LP, half by the server"


def _all(
    lab: Lab, conns: list[Conn], done: Callable[[Conn], object], what: str, seconds: float
) -> None:
    """Wait until it is true of every connection; a failure says of how many it is not."""
    left = list(conns)

    def finished() -> bool:
        while left and done(left[-1]):
            left.pop()
        return not left

    def progress() -> tuple[int, int]:
        return len(left), sum(len(conn.inbox) + bool(conn.peer) for conn in left)

    try:
        lab.until(finished, f"each of {len(conns)} connections {what}", seconds, progress)
    except Failure as failure:
        left = [conn for conn in conns if not done(conn)]
        ids = ", ".join(str(conn.id) for conn in left[:5])
        more = ", ..." if len(left) > 5 else ""
        raise Failure(f"{failure} ({len(left)} are not there: {ids}{more})") from None


@check(3, "256-connections", seconds=25)
def connections_256(lab: Lab) -> str:
    """256 connections open at once"""
    return many(lab, 256, 10)


@check(3, "dealt-out", seconds=25)
def dealt_out(lab: Lab) -> str:
    """Messages of 16 connections dealt to 4 pipes in random order"""
    lp = steps.start(lab, 4)
    server = Server(lab)
    messages, sent = [], {}
    for _ in range(16):
        conn = lp.dial(server)
        pieces = [b"%d of %d, " % (k, conn.id) for k in range(30)]
        messages += [conn.make_syn(), *(conn.make_data(piece) for piece in pieces)]
        messages.append(conn.make_fin())
        sent[conn] = b"".join(pieces)
    lab.random.shuffle(messages)
    for message in messages:
        lp.send(message, lab.random.randrange(4))
        lab.settle(0.02)
    for conn, expected in sent.items():
        peer = steps.connected(lab, conn)
        steps.sees_eof(lab, peer)
        steps.arrives(lab, peer.inbox, expected)
    return f"{len(messages)} messages in random order"


@check(3, "gap-alone")
def gap_alone(lab: Lab) -> str:
    """A gap in one connection does not hold another"""
    lp = steps.start(lab, 4)
    server = steps.echo_server(lab)
    held, other = lp.dial(server).syn(), lp.dial(server).syn()
    missing = held.make_data(b"first, ")
    for pipe in range(4):
        held.data(b"later, ", pipe)
    for _ in range(10):
        steps.echoes(lab, other, TEXT)
    if len(steps.connected(lab, held).inbox):
        raise Failure(f"{held}: the server got something though message 1 had not arrived")
    lp.send(missing)
    steps.arrives(lab, held.inbox, b"first, " + b"later, " * 4)
    return "10 echoes on one while the other waited"


@check(3, "stalled-server")
def stalled_server(lab: Lab) -> str:
    """A server that does not read holds up its own connection only"""
    lp = steps.start(lab, 4)
    stalled = lp.dial(Server(lab, Peer.pause, rcvbuf=8 * KIB)).syn()
    peer = steps.connected(lab, stalled)
    pattern = Pattern(30, 4 * MIB)
    peer.inbox.expect(pattern)
    stalled.start_upload(pattern)
    for _ in range(3):
        steps.works(lab, lp)
    peer.resume()
    steps.completes(lab, peer.inbox)
    return "three other connections meanwhile; then all of its 4 MiB"


@check(3, "slow-connect")
def slow_connect(lab: Lab) -> str:
    """A server that does not answer the handshake yet: others go on, early data are kept"""
    lp = steps.start(lab, 4)
    silent = SilentServer(lab)
    slow = lp.dial(silent).syn()
    slow.data(TEXT)
    server = steps.echo_server(lab)
    started = time.monotonic()
    for _ in range(3):
        conn = lp.dial(server).syn()
        try:
            steps.echoes(lab, conn, TEXT, seconds=3)
        except Failure as failure:
            raise Failure(f"while another connection's handshake waits: {failure}") from None
        steps.lp_closes(lab, conn)
    took = time.monotonic() - started
    silent.let_in()
    steps.arrives(lab, steps.connected(lab, slow).inbox, TEXT)
    return f"three others in {took * 1000:.0f} ms; then connected and got its early data"


@check(3, "bulk-and-chat")
def bulk_and_chat(lab: Lab) -> str:
    """Echoes on one connection beside a long download on another"""
    lp = steps.start(lab, 4)
    bulk = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, bulk)
    pattern = Pattern(31, 12 * MIB)
    bulk.inbox.expect(pattern)
    chat = lp.dial(steps.echo_server(lab)).syn()
    peer.stream(pattern)
    for turn in range(10):
        steps.echoes(lab, chat, b"turn %d, " % turn)
    steps.completes(lab, bulk.inbox)
    return "10 echoes beside 12 MiB"


@check(3, "downloads", seconds=25)
def downloads(lab: Lab) -> str:
    """32 downloads at once, by hash, each ended by its server"""
    lp = steps.start(lab, 4)
    conns = _downloading(lab, lp, 32, 200 * KIB)
    _all(lab, conns, lambda conn: conn.inbox.complete and conn.over, "to end", 20)
    return "32 of 200 KiB, and their FINs"


def _downloading(lab: Lab, lp: LocalProxy, count: int, size: int) -> list[Conn]:
    """So many downloads under way, each closed by its server at its end."""

    def serve(peer: Peer) -> None:
        peer.stream(Pattern(peer.conn.id, size), then=peer.close)

    server = Server(lab, serve)
    conns = [lp.dial(server) for _ in range(count)]
    for conn in conns:
        conn.inbox.expect(Pattern(conn.id, size))
        conn.syn()
    return conns


@check(3, "uploads", seconds=25)
def uploads(lab: Lab) -> str:
    """32 uploads at once, by hash, each ended by LP"""
    lp = steps.start(lab, 4)
    server = Server(lab)
    conns = [lp.dial(server).syn() for _ in range(32)]
    for conn in conns:
        pattern = Pattern(conn.id, 200 * KIB)
        steps.connected(lab, conn).inbox.expect(pattern)
        conn.start_upload(pattern)
    _all(lab, conns, lambda c: c.peer.inbox.complete, "to deliver 200 KiB", 20)
    for conn in conns:
        conn.fin()
    for conn in conns:
        steps.sees_eof(lab, steps.connected(lab, conn))
    return "32 of 200 KiB, and their ends"


@check(3, "some-end")
def some_end(lab: Lab) -> str:
    """Connections that end do not disturb those that go on"""
    lp = steps.start(lab, 4)
    lasting = _downloading(lab, lp, 8, 1 * MIB)
    for _ in range(40):
        steps.works(lab, lp)
    _all(lab, lasting, lambda conn: conn.inbox.complete and conn.over, "to end", 15)
    return "40 short ones beside 8 downloads of 1 MiB"
