# SPDX-License-Identifier: MIT
"""Level 4: what real work brings. Connects that fail, ends at any moment, large and many."""

from __future__ import annotations

import resource
from collections.abc import Callable

from .. import namespace, steps, wire
from ..failure import CannotRun, Failure
from ..lab import Lab
from ..lp import Conn, LocalProxy
from ..registry import check
from ..server import ClosedPort, Peer, Server, SilentServer
from ..steps import KIB, MIB, TEXT
from ..stream import Pattern
from . import level3


def _fails(lab: Lab, lp: LocalProxy, conn: Conn, seconds: float = 5.0) -> None:
    """A connect that fails is told by FIN 0x99, RP's first and last message for it."""
    what = f"RP's FIN for {conn}, which cannot be connected"
    lab.until(lambda: conn.over, what, seconds)
    steps.fin_comes(lab, conn, wire.BY_RESET, 0)
    steps.works(lab, lp)


@check(4, "refused")
def refused(lab: Lab) -> str:
    """A server that refuses: FIN 0x99 with number 0"""
    lp = steps.start(lab, 4)
    closed = ClosedPort(lab)
    for _ in range(3):
        _fails(lab, lp, lp.dial(closed).syn())
    conns = [lp.dial(closed).syn() for _ in range(50)]
    for conn in conns:
        steps.fin_comes(lab, conn, wire.BY_RESET, 0)
    steps.works(lab, lp)
    return "53 refused, others work"


@check(4, "refused-early-data")
def refused_early_data(lab: Lab) -> str:
    """A refused connection whose data are already under way, and more come later"""
    lp = steps.start(lab, 4)
    closed = ClosedPort(lab)
    for turn in range(20):
        conn = lp.dial(closed)
        messages = [conn.make_syn(), *(conn.make_data(TEXT * 40) for _ in range(10))]
        for message in messages:
            lp.send(message)
        _fails(lab, lp, conn)
        conn.data(b"too late")
        if turn % 2:
            conn.fin()
    lab.listen(0.2)
    steps.works(lab, lp)
    return "20 refused with 10 messages each, and more after the FIN"


@check(4, "unreachable")
def unreachable(lab: Lab) -> str:
    """A destination without a route: FIN 0x99 with number 0"""
    lp = steps.start(lab, 4)
    # Outside a namespace only an address that no packet can leave for.
    address = "198.51.100.7" if lab.isolated else "255.255.255.255"
    for _ in range(3):
        conn = lp.dial_address(address, 80).syn()
        conn.data(TEXT)
        _fails(lab, lp, conn)
    return f"3 times to {address}"


@check(4, "connect-times-out", needs_namespace=True)
def connect_times_out(lab: Lab) -> str:
    """A server that never answers: FIN 0x99 when the kernel gives up (here after 3 s)"""
    try:
        namespace.set_sysctl("net.ipv4.tcp_syn_retries", "1")
    except OSError as err:
        raise CannotRun(f"net.ipv4.tcp_syn_retries cannot be set: {err.strerror}") from None
    lp = steps.start(lab, 4)
    conn = lp.dial(SilentServer(lab)).syn()
    conn.data(TEXT)
    _fails(lab, lp, conn, 12)
    return "FIN 0x99, number 0"


@check(4, "lp-reset")
def lp_reset(lab: Lab) -> str:
    """LP's FIN with reason 0x99: the server sees a reset"""
    lp = steps.start(lab, 4)
    server = Server(lab)
    for size in (0, 1, 4096):
        conn = lp.dial(server).syn()
        peer = steps.connected(lab, conn)
        if size:
            conn.data(b"x" * size)
            steps.arrives(lab, peer.inbox, b"x" * size)
        conn.fin(wire.BY_RESET)
        lab.until(lambda p=peer: p.ended, f"the server of {conn} to see a reset")
        if peer.eof:
            raise Failure(f"the server of {conn} saw an orderly end, not a reset")
    return "after 0, 1 and 4096 bytes"


def _end_mid_download(lab: Lab, reason: int) -> str:
    lp = steps.start(lab, 4)
    server = Server(lab)
    bystander = lp.dial(steps.echo_server(lab)).syn()
    for _ in range(10):
        conn = lp.dial(server).syn()
        peer = steps.connected(lab, conn)
        pattern = Pattern(40, 64 * MIB)
        conn.inbox.expect(pattern)
        peer.stream(pattern)
        lab.until(lambda c=conn: len(c.inbox) > 100 * KIB, "the download to be under way")
        conn.fin(reason)
        lab.until(lambda p=peer: p.ended, f"the server of {conn} to see that LP went away")
        peer.close()
        steps.echoes(lab, bystander, TEXT)
    return "10 times; the server stopped, another connection went on"


@check(4, "lp-fin-mid-download", seconds=25)
def lp_fin_mid_download(lab: Lab) -> str:
    """LP's FIN in the middle of a download ends it at the server"""
    return _end_mid_download(lab, wire.BY_FIN)


@check(4, "lp-reset-mid-download", seconds=25)
def lp_reset_mid_download(lab: Lab) -> str:
    """LP's reset in the middle of a download ends it at the server"""
    return _end_mid_download(lab, wire.BY_RESET)


@check(4, "lp-fin-unwritten")
def lp_fin_unwritten(lab: Lab) -> str:
    """LP's FIN while the server is slow to read: what is queued is written first"""
    lp = steps.start(lab, 4)
    conn = lp.dial(Server(lab, Peer.pause, rcvbuf=8 * KIB)).syn()
    peer = steps.connected(lab, conn)
    pattern = Pattern(41, 2 * MIB)
    peer.inbox.expect(pattern)
    for at in range(0, pattern.size, wire.PAYLOAD_MAX):
        conn.data(pattern.read(at, wire.PAYLOAD_MAX))
    conn.fin()
    steps.works(lab, lp)
    peer.resume()
    steps.completes(lab, peer.inbox)
    steps.sees_eof(lab, peer)
    return "2 MiB, then the end"


@check(4, "lp-reset-unwritten")
def lp_reset_unwritten(lab: Lab) -> str:
    """LP's reset while data wait for a server that does not read"""
    lp = steps.start(lab, 4)
    conn = lp.dial(Server(lab, Peer.pause, rcvbuf=8 * KIB)).syn()
    peer = steps.connected(lab, conn)
    peer.inbox.expect(Pattern(42, 2 * MIB))
    for at in range(0, 2 * MIB, wire.PAYLOAD_MAX):
        conn.data(peer.inbox.expected.read(at, wire.PAYLOAD_MAX))
    conn.fin(wire.BY_RESET)
    steps.works(lab, lp)
    peer.resume()
    lab.until(lambda: peer.ended, f"the server of {conn} to see the end after LP's reset")
    if peer.eof:
        raise Failure(f"{conn}: LP reset it, yet its server saw an orderly end")
    return f"the server got {len(peer.inbox)} of {2 * MIB} bytes, then a reset"


def _server_ends_mid_upload(lab: Lab, end: Callable[[Peer], None]) -> str:
    lp = steps.start(lab, 4)
    server = Server(lab)
    reasons = []
    for turn in range(10):
        conn = lp.dial(server).syn()
        peer = steps.connected(lab, conn)
        pattern = Pattern(43 + turn, 4 * MIB)
        peer.inbox.expect(pattern)
        conn.start_upload(pattern)
        lab.until(lambda p=peer: len(p.inbox) > 200 * KIB, "the upload to be under way")
        end(peer)
        lab.until(lambda c=conn: c.over, f"RP's FIN for {conn}, whose server went away")
        reasons.append(conn.reason)
        # The rest of the upload arrives for a connection that is over.
        lab.until(lambda c=conn: c not in lp.uploads and not lp.unsent, "RP to read on", 10)
        conn.fin()
        steps.works(lab, lp)
    if wire.BY_RESET not in reasons and end is Peer.reset:
        raise Failure("the server reset each time, yet RP's FINs said 0x88")
    return "10 times; the rest was dropped silently, others work"


@check(4, "server-fin-mid-upload", seconds=25)
def server_fin_mid_upload(lab: Lab) -> str:
    """The server closes while LP still sends: a FIN, and RP lives on (SIGPIPE)"""
    return _server_ends_mid_upload(lab, Peer.close)


@check(4, "server-reset-mid-upload", seconds=25)
def server_reset_mid_upload(lab: Lab) -> str:
    """The server resets while LP still sends: FIN 0x99, and RP lives on"""
    return _server_ends_mid_upload(lab, Peer.reset)


@check(4, "server-gone")
def server_gone(lab: Lab) -> str:
    """RP finds data for a server and that the server has gone: it lives on (SIGPIPE)"""
    lp = steps.start(lab, 1)
    server = Server(lab)
    ends = ([Peer.reset], [Peer.shutdown, Peer.reset], [Peer.close])
    for end in ends * 3:
        conn = lp.dial(server).syn()
        peer = steps.connected(lab, conn)
        conn.data(TEXT)
        steps.arrives(lab, peer.inbox, TEXT)
        with lab.remote.frozen():
            # The data first: an RP that takes events in their order writes before it reads.
            for _ in range(3):
                conn.data(TEXT)
            for act in end:
                act(peer)
        lab.until(lambda c=conn: c.over, f"RP's FIN for {conn}, whose server went away")
        if end == [Peer.reset]:
            steps.fin_comes(lab, conn, wire.BY_RESET)
        conn.fin()
        steps.works(lab, lp)
    return "9 times, after FIN, RST and both; others work"


@check(4, "server-reset-mid-download")
def server_reset_mid_download(lab: Lab) -> str:
    """The server resets in the middle of a download: FIN 0x99"""
    lp = steps.start(lab, 4)
    server = Server(lab)
    for turn in range(10):
        conn = lp.dial(server).syn()
        peer = steps.connected(lab, conn)
        conn.inbox.expect(Pattern(60 + turn, 64 * MIB))
        peer.stream(conn.inbox.expected)
        lab.until(lambda c=conn: len(c.inbox) > 200 * KIB, "the download to be under way")
        peer.reset()
        steps.fin_comes(lab, conn, wire.BY_RESET)
    steps.works(lab, lp)
    return "10 times FIN 0x99"


@check(4, "fin-while-connecting")
def fin_while_connecting(lab: Lab) -> str:
    """Data and LP's FIN come before the connect is done: they are delivered after it"""
    lp = steps.start(lab, 4)
    silent = SilentServer(lab)
    conn = lp.dial(silent).syn()
    conn.data(TEXT)
    conn.fin()
    steps.works(lab, lp)
    silent.let_in()
    peer = steps.connected(lab, conn)
    steps.sees_eof(lab, peer)
    steps.arrives(lab, peer.inbox, TEXT)
    return "connected, got its data, then the end"


@check(4, "reset-while-connecting")
def reset_while_connecting(lab: Lab) -> str:
    """LP's reset comes before the connect is done: it is given up"""
    lp = steps.start(lab, 4)
    silent = SilentServer(lab)
    conn = lp.dial(silent).syn()
    conn.data(TEXT)
    conn.fin(wire.BY_RESET)
    steps.works(lab, lp)
    silent.let_in()
    lab.listen(1.5)
    if conn.peer is not None:
        lab.until(lambda: conn.peer.ended, f"the server of {conn} to see the end")
        if conn.peer.eof:
            raise Failure(f"{conn}: LP reset it, yet its server saw an orderly end")
    steps.works(lab, lp)
    return "connected and reset" if conn.peer else "never connected"


@check(4, "both-end")
def both_end(lab: Lab) -> str:
    """LP and the server end the same connection at the same moment"""
    lp = steps.start(lab, 4)
    server = steps.echo_server(lab)
    for turn in range(100):
        conn = lp.dial(server).syn()
        steps.echoes(lab, conn, TEXT)
        peer = steps.connected(lab, conn)
        (peer.close if turn % 2 else peer.reset)()
        conn.fin(wire.BY_RESET if turn % 4 < 2 else wire.BY_FIN)
    steps.works(lab, lp)
    return "100 times, by FIN and RST"


@check(4, "late-messages")
def late_messages(lab: Lab) -> str:
    """Data and a FIN for a connection that RP already ended are dropped silently"""
    lp = steps.start(lab, 4)
    server = steps.echo_server(lab)
    for reason in (wire.BY_FIN, wire.BY_RESET):
        for end in (Peer.close, Peer.reset):
            conn = lp.dial(server).syn()
            steps.echoes(lab, conn, TEXT)
            end(steps.connected(lab, conn))
            lab.until(lambda c=conn: c.over, f"RP's FIN for {conn}")
            conn.data(TEXT)
            conn.data(TEXT)
            conn.fin(reason)
    lab.listen(0.3)
    steps.works(lab, lp)
    return "after FIN and RST of the server, with 0x88 and 0x99"


@check(4, "id-reused")
def id_reused(lab: Lab) -> str:
    """An id that is used again right after its last connection ended starts anew"""
    lp = steps.start(lab, 4)
    server = steps.echo_server(lab)
    for turn in range(20):
        conn = lp.dial(server, 7).syn(0)
        # Each has fewer messages than the one before, so that leftovers can be told.
        for word in range(24 - turn):
            steps.echoes(lab, conn, b"turn %d word %d, " % (turn, word))
        if turn % 2 == 0:
            steps.lp_closes(lab, conn)
        else:
            steps.connected(lab, conn).close()
            steps.fin_comes(lab, conn, wire.BY_FIN)
    return "20 connections with id 7, ended by LP and by the server in turn"


@check(4, "5000-connections", seconds=75)
def connections_5000(lab: Lab) -> str:
    """5,000 connections open at once"""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(5000, soft - 100)
    if count < 2000:
        raise CannotRun(f"a process may have only {soft} open files here")
    return level3.many(lab, count, 40)


@check(4, "64-mib-upload", seconds=45)
def upload_64(lab: Lab) -> str:
    """64 MiB up over 4 pipes, by hash"""
    lp = steps.start(lab, 4)
    return f"64 MiB, {steps.upload(lab, lp.dial(Server(lab)).syn(), 64 * MIB, 70, 40)}"


@check(4, "64-mib-download", seconds=45)
def download_64(lab: Lab) -> str:
    """64 MiB down over 4 pipes, by hash"""
    lp = steps.start(lab, 4)
    return f"64 MiB, {steps.download(lab, lp.dial(Server(lab)).syn(), 64 * MIB, 71, 40)}"


@check(4, "churn", seconds=45)
def churn(lab: Lab) -> str:
    """2,000 short connections, 50 at a time"""
    lp = steps.start(lab, 4)
    server = steps.echo_server(lab)
    total, done = 2000, 0
    while done < total:
        batch = [lp.dial(server) for _ in range(50)]
        for conn in batch:
            lp.send(conn.make_syn() + conn.make_data(b"request %d" % conn.id))
        for conn in batch:
            steps.arrives(lab, conn.inbox, b"request %d" % conn.id)
            conn.fin()
        for conn in batch:
            peer = steps.connected(lab, conn)
            lab.until(lambda p=peer: p.ended, f"the server of {conn} to see the end")
            peer.close()
        done += len(batch)
    return f"{done} connections"


MAX_FILES = 256


@check(4, "descriptors", seconds=40)
def descriptors(lab: Lab) -> str:
    """With 256 descriptors RP gets through 600 connections, however they end"""
    lp = steps.start(lab, 4, max_files=MAX_FILES)
    server, closed = steps.echo_server(lab), ClosedPort(lab)
    for turn in range(600):
        try:
            _one_life(lab, lp.dial(closed if turn % 5 == 0 else server).syn(), turn % 5)
        except Failure as failure:
            raise Failure(f"connection {turn + 1} of 600: {failure}") from None
    return "120 each refused, ended by FIN and by RST of LP and of the server"


def _one_life(lab: Lab, conn: Conn, kind: int) -> None:
    if kind == 0:
        steps.fin_comes(lab, conn, wire.BY_RESET, 0)
        return
    steps.echoes(lab, conn, TEXT)
    if kind < 3:
        steps.lp_closes(lab, conn, wire.BY_FIN if kind == 1 else wire.BY_RESET)
        return
    peer = steps.connected(lab, conn)
    (peer.close if kind == 3 else peer.reset)()
    lab.until(lambda: conn.over, f"RP's FIN for {conn}")
