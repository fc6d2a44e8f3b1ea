# SPDX-License-Identifier: MIT
"""What the course takes for granted, and what a proxy in the open has to bear."""

from __future__ import annotations

import signal

from .. import steps, wire
from ..failure import Failure
from ..lab import Lab
from ..registry import EXTRA, check
from ..server import Peer, Server
from ..steps import KIB, MIB, TEXT
from ..stream import Pattern


@check(EXTRA, "ids-to-65535")
def ids_to_65535(lab: Lab) -> str:
    """Ids above 32767, of which the course's own LP makes no use"""
    lp = steps.start(lab, 4)
    for ident in (65535, 32768, 65534, 40000):
        conn = lp.dial(steps.echo_server(lab), ident).syn()
        steps.echoes(lab, conn, TEXT)
        steps.lp_closes(lab, conn)
    return "4 ids"


@check(EXTRA, "duplicates")
def duplicates(lab: Lab) -> str:
    """Each data message sent a second time over another pipe: delivered once"""
    lp = steps.start(lab, 4)
    conn = lp.dial(Server(lab)).syn()
    pieces = [b"piece %d, " % k for k in range(100)]
    messages = [conn.make_data(piece) for piece in pieces]
    for k, message in enumerate(messages):
        lp.send(message, k % 4)
        lp.send(message, (k + 1 + k % 3) % 4)
    conn.fin()
    peer = steps.connected(lab, conn)
    steps.sees_eof(lab, peer)
    steps.arrives(lab, peer.inbox, b"".join(pieces))
    return f"{len(messages)} messages twice"


@check(EXTRA, "next-session", seconds=25)
def next_session(lab: Lab) -> str:
    """LP goes, in order or not, and the next one is served"""
    lp = steps.start(lab, 4)
    for by_reset in (False, True, False, True):
        steps.works(lab, lp)
        conn = lp.dial(Server(lab)).syn()
        peer = steps.connected(lab, conn)
        conn.inbox.expect(Pattern(80, 64 * MIB))
        peer.stream(conn.inbox.expected)
        lab.until(lambda c=conn: len(c.inbox) > 100 * KIB, "the download to be under way")
        for pipe in lp.pipes:
            pipe.close(by_reset)
        lab.until(lambda p=peer: p.was_reset, f"the server of {conn} to see a reset")
        lp = steps.join(lab, 4)
    steps.works(lab, lp)
    return "4 sessions ended in mid transfer, a fifth works"


@check(EXTRA, "two-sessions")
def two_sessions(lab: Lab) -> str:
    """Two local proxies at once, with the same ids"""
    one = steps.start(lab, 4)
    two = steps.join(lab, 4, "127.0.0.2")
    server = steps.echo_server(lab)
    conns = [(one.dial(server).syn(), two.dial(server).syn()) for _ in range(10)]
    for turn in range(5):
        for first, second in conns:
            steps.echoes(lab, first, b"first %d " % turn)
            steps.echoes(lab, second, b"second %d " % turn)
    for pipe in two.pipes:
        pipe.close()
    for first, _second in conns:
        steps.echoes(lab, first, b"alone")
    return "10 connections each; one goes, the other works on"


@check(EXTRA, "pipe-lost")
def pipe_lost(lab: Lab) -> str:
    """One pipe ends: RP ends the session, resets its connections and serves the next LP"""
    lp = steps.start(lab, 4)
    conns = [lp.dial(steps.echo_server(lab)).syn() for _ in range(5)]
    for conn in conns:
        steps.echoes(lab, conn, TEXT)
    lp.may_lose_pipes = True
    lp.pipes[2].close()
    lab.until(lambda: all(pipe.closed for pipe in lp.pipes), "RP to close the other pipes")
    for conn in conns:
        peer = steps.connected(lab, conn)
        lab.until(lambda p=peer: p.ended, f"the server of {conn} to see the end")
        if peer.eof:
            raise Failure(f"the server of {conn} saw an orderly end, not a reset")
    steps.works(lab, steps.join(lab, 4))
    return "the other 3 pipes closed, 5 connections reset, the next LP served"


@check(EXTRA, "bad-length", seconds=25)
def bad_length(lab: Lab) -> str:
    """Impossible lengths end the session they came in, and nothing else"""
    lp = steps.start(lab, 2)
    for length in (0, 1, 8, 4105, 0x7FFF, 0xFFFD):
        steps.works(lab, lp)
        lp.may_lose_pipes = True
        lp.send(wire.HEADER.pack(3, 1, length), 1)
        lab.until(
            lambda old=lp: all(pipe.closed for pipe in old.pipes),
            f"RP to end the session in which a length of {length} came",
        )
        lp = steps.join(lab, 2)
    steps.works(lab, lp)
    return "6 lengths; each time the next LP is served"


@check(EXTRA, "bad-messages")
def bad_messages(lab: Lab) -> str:
    """Id 0, a SYN that is not number 0, an unknown reason: other connections go on"""
    lp = steps.start(lab, 2)
    server = steps.echo_server(lab)
    bystander = lp.dial(server).syn()
    victim = lp.dial(server).syn()
    steps.echoes(lab, victim, TEXT)
    spare = lp.dial(server)
    bad = (
        wire.data(0, 0, TEXT),
        wire.fin(0, 0, wire.BY_FIN),
        wire.HEADER.pack(spare.id, 5, wire.SYN) + bytes([127, 0, 0, 9, 1, 2]),
        wire.fin(victim.id, victim.number, 0x42),
    )
    for message in bad:
        lp.send(message)
        steps.echoes(lab, bystander, TEXT)
    steps.works(lab, lp)
    return "4 kinds, and a connection that did not notice"


@check(EXTRA, "id-overtaken")
def id_overtaken(lab: Lab) -> str:
    """A new SYN for an id arrives before the FIN of its last owner"""
    lp = steps.start(lab, 2)
    server = steps.echo_server(lab)
    old = lp.dial(server, 7).syn(0)
    for word in range(8):
        steps.echoes(lab, old, b"old %d, " % word, 0)
    old_peer, old_fin = steps.connected(lab, old), old.make_fin()
    new = lp.dial(server, 7).syn(1)
    steps.echoes(lab, new, b"new, ", 1)
    lp.send(old_fin, 0)
    lab.until(lambda: old_peer.ended, "the old connection's server to see the end")
    steps.echoes(lab, new, b"and still new", 0)
    steps.lp_closes(lab, new)
    return "the old one ended, the new one was not touched"


@check(EXTRA, "number-too-far")
def number_too_far(lab: Lab) -> str:
    """A number more than 2^20 ahead ends its connection"""
    lp = steps.start(lab, 2)
    conn = lp.dial(Server(lab)).syn()
    steps.connected(lab, conn)
    conn.number += (1 << 20) + 2
    conn.data(TEXT)
    steps.fin_comes(lab, conn, wire.BY_RESET, 0)
    steps.works(lab, lp)
    return "FIN 0x99, others work"


@check(EXTRA, "bounded-download")
def bounded_download(lab: Lab) -> str:
    """While no pipe is read RP does not take the server's bytes without end"""
    lp = steps.start(lab, 3, rcvbuf=32 * KIB)
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    pattern = Pattern(81, 1024 * MIB)
    lp.pause()
    peer.stream(pattern)
    lab.watch_for(
        1.5, lambda: peer.sent > 128 * MIB, "RP took more than 128 MiB that it cannot send on"
    )
    lp.pipes[0].resume()
    conn.fin(wire.BY_RESET)
    lab.until(lambda: peer.ended, f"the server of {conn} to see the end")
    return f"{peer.sent / MIB:.1f} MiB of 1 GiB taken"


@check(EXTRA, "bounded-gap", seconds=25)
def bounded_gap(lab: Lab) -> str:
    """Behind a gap RP holds 48 MiB; endless data behind one end that connection"""
    lp = steps.start(lab, 4)
    conn = lp.dial(Server(lab)).syn(0)
    peer = steps.connected(lab, conn)
    pattern = Pattern(82, 48 * MIB)
    peer.inbox.expect(pattern)
    first = conn.make_data(pattern.read(0, wire.PAYLOAD_MAX))
    conn.upload = (pattern, wire.PAYLOAD_MAX)
    lp.uploads.append(conn)
    lab.until(lambda: conn not in lp.uploads and not lp.unsent, "RP to read 48 MiB", 10)
    lp.send(first, 0)
    steps.completes(lab, peer.inbox)
    endless = lp.dial(Server(lab)).syn(0)
    steps.connected(lab, endless)
    endless.number += 1
    endless.start_upload(Pattern(83, 128 * MIB))
    steps.fin_comes(lab, endless, wire.BY_RESET, 0)
    lab.until(lambda: endless not in lp.uploads and not lp.unsent, "RP to read on", 10)
    steps.works(lab, lp)
    return "48 MiB held and delivered; the endless one got FIN 0x99"


@check(EXTRA, "bounded-early-data")
def bounded_early_data(lab: Lab) -> str:
    """Too much data before a SYN: the SYN is answered by FIN 0x99, not by silence"""
    lp = steps.start(lab, 2)
    pattern = Pattern(84, 12 * MIB)
    conn = lp.dial(Server(lab, lambda peer: peer.inbox.expect(pattern)))
    syn = conn.make_syn()
    conn.start_upload(pattern)
    lab.until(lambda: conn not in lp.uploads and not lp.unsent, "RP to read 12 MiB", 10)
    lab.settle(1.0)
    lp.send(syn)
    lab.until(lambda: conn.over or conn.peer, f"RP to answer the SYN of {conn}")
    if not conn.over:
        raise Failure("RP kept 12 MiB for a SYN that might never have come")
    steps.fin_comes(lab, conn, wire.BY_RESET, 0)
    steps.works(lab, lp)
    return "12 MiB, then the SYN: FIN 0x99"


@check(EXTRA, "stuck-server", seconds=25)
def stuck_server(lab: Lab) -> str:
    """A server that never reads cannot stop the pipes for long: its connection is reset"""
    lp = steps.start(lab, 2)
    conn = lp.dial(Server(lab, Peer.pause, rcvbuf=8 * KIB)).syn()
    steps.connected(lab, conn)
    conn.start_upload(Pattern(85, 40 * MIB))
    lab.until(lambda: conn.over or conn not in lp.uploads, "RP to take or end 40 MiB", 10)
    steps.fin_comes(lab, conn, wire.BY_RESET, 0)
    steps.works(lab, lp)
    return "FIN 0x99, others work"


@check(EXTRA, "killed")
def killed(lab: Lab) -> str:
    """RP is killed in mid upload: the server sees a reset, never a clean end"""
    lp = steps.start(lab, 2)
    lp.may_lose_pipes = True
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    pattern = Pattern(86, 64 * MIB)
    peer.inbox.expect(pattern)
    conn.start_upload(pattern)
    lab.until(lambda: len(peer.inbox) > 1 * MIB, "the upload to be under way")
    lab.remote_may_exit = True
    lab.remote.signal(signal.SIGKILL)
    lab.until(lambda: peer.ended, "the server to see the end")
    if peer.eof:
        raise Failure(f"the server saw a clean end after {len(peer.inbox)} of {pattern.size} bytes")
    return f"a reset after {len(peer.inbox)} bytes"
