# SPDX-License-Identifier: MIT
"""Level 1: connections one after another over one pipe."""

from __future__ import annotations

import contextlib
import itertools

from .. import namespace, steps, wire
from ..failure import Failure
from ..lab import Lab
from ..lp import Conn, LocalProxy
from ..registry import check
from ..server import Peer, Server
from ..steps import KIB, MIB, TEXT
from ..stream import Pattern


@check(1, "starts")
def starts(lab: Lab) -> str:
    """RP listens on port 6000 within 5 s, takes one pipe and keeps it"""
    lp = steps.start(lab, 1)
    lab.watch_for(0.3, lambda: lp.pipes[0].bytes_in, "RP sent something before any connection")
    return "one pipe is up and quiet"


def _servers_both_ways(lab: Lab) -> tuple[Server, int]:
    """A server, and one on its port read the wrong way round, for an RP that goes there."""
    for _ in range(20):
        server = Server(lab)
        swapped = int.from_bytes(server.port.to_bytes(2, "little"), "big")
        if swapped == server.port:
            continue
        with contextlib.suppress(OSError):  # taken, or not for an ordinary user
            Server(lab, port=swapped)
            return server, swapped
    return server, swapped


@check(1, "connects")
def connects(lab: Lab) -> str:
    """A SYN makes RP connect to the address and port that it names"""
    lp = steps.start(lab, 1)
    server, swapped = _servers_both_ways(lab)
    conn = lp.dial(server)
    backwards = ".".join(reversed(conn.address.split(".")))
    if lab.isolated:
        namespace.add_address(backwards)
    conn.syn()
    try:
        steps.connected(lab, conn)
    except Failure as failure:
        if f"connected to {backwards}" in str(failure):
            raise Failure(
                f"{failure}: the address is sent as it is written, first byte first"
            ) from None
        if f":{swapped}," in str(failure):
            raise Failure(f"{failure}: the port is little-endian") from None
        raise
    return f"RP connected to {conn.address}:{conn.port}"


@check(1, "upload")
def upload(lab: Lab) -> str:
    """Data messages reach the server as they were sent"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    for count in range(1, 11):
        conn.data(TEXT * count)
    steps.arrives(lab, peer.inbox, b"".join(TEXT * count for count in range(1, 11)))
    return f"10 messages, {len(peer.inbox)} bytes"


@check(1, "download")
def download(lab: Lab) -> str:
    """What the server sends comes in data messages, numbered from 0"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    sent = b""
    for size in (1, 10, 100, 1000, 10000):
        peer.send(TEXT[:1] * size)
        sent += TEXT[:1] * size
        steps.arrives(lab, conn.inbox, sent)
    return f"{len(sent)} bytes in {conn.expected} messages"


@check(1, "server-first")
def server_first(lab: Lab) -> str:
    """A server that greets is heard though LP sent nothing yet"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab, lambda peer: peer.send(b"220 ready\r\n"))).syn()
    steps.arrives(lab, conn.inbox, b"220 ready\r\n")
    conn.data(b"QUIT\r\n")
    steps.arrives(lab, steps.connected(lab, conn).inbox, b"QUIT\r\n")
    return "greeting, then the answer"


@check(1, "smallest")
def smallest(lab: Lab) -> str:
    """Single bytes to and fro: messages of 9 bytes"""
    lp = steps.start(lab, 1)
    conn = lp.dial(steps.echo_server(lab)).syn()
    for byte in range(40):
        steps.echoes(lab, conn, bytes([byte]))
    return "40 single bytes and their echoes"


@check(1, "largest")
def largest(lab: Lab) -> str:
    """Messages of 4104 bytes are taken, and none larger are sent"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    sent = Pattern(1, 10 * wire.PAYLOAD_MAX).read(0, 10 * wire.PAYLOAD_MAX)
    for at in range(0, len(sent), wire.PAYLOAD_MAX):
        conn.data(sent[at : at + wire.PAYLOAD_MAX])
    steps.arrives(lab, peer.inbox, sent)
    peer.send(sent)
    steps.arrives(lab, conn.inbox, sent)
    return f"10 of 4104 bytes up; {len(sent)} bytes down in {conn.expected} messages"


@check(1, "back-to-back")
def back_to_back(lab: Lab) -> str:
    """SYN, data and FIN in one write: nothing waits, nothing is lost"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab))
    sent = TEXT * 50
    lp.send(conn.make_syn() + conn.make_data(sent) + conn.make_data(TEXT) + conn.make_fin())
    peer = steps.connected(lab, conn)
    steps.sees_eof(lab, peer)
    steps.arrives(lab, peer.inbox, sent + TEXT)
    return f"{len(peer.inbox)} bytes, then the end"


def _short_life(conn: Conn) -> tuple[bytes, bytes]:
    """A whole connection's messages, and what its server is to receive."""
    payloads = (b"a", b"bcdefghijkl", b"mnop")
    messages = conn.make_syn() + b"".join(conn.make_data(part) for part in payloads)
    return messages + conn.make_fin(), b"".join(payloads)


def _check_life(lab: Lab, conn: Conn, sent: bytes, how: str) -> None:
    try:
        peer = steps.connected(lab, conn)
        steps.sees_eof(lab, peer)
        steps.arrives(lab, peer.inbox, sent)
        peer.close()
    except Failure as failure:
        raise Failure(f"{how}: {failure}") from None


@check(1, "cut-anywhere", seconds=25)
def cut_anywhere(lab: Lab) -> str:
    """Messages that arrive in two pieces, cut at every byte, and byte by byte"""
    lp = steps.start(lab, 1)
    server = Server(lab)
    for cut in itertools.count(1):
        conn = lp.dial(server)
        messages, sent = _short_life(conn)
        if cut == len(messages):
            break
        lp.send(messages[:cut])
        lab.settle()
        lp.send(messages[cut:])
        _check_life(lab, conn, sent, f"cut after byte {cut} of {len(messages)}")
    for byte in messages:
        lp.send(bytes([byte]))
        lab.settle()
    _check_life(lab, conn, sent, "sent byte by byte")
    return f"{cut - 1} cuts, and {len(messages)} single bytes"


@check(1, "joined")
def joined(lab: Lab) -> str:
    """Hundreds of messages of all sizes in one write"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab))
    sizes = [lab.random.choice((1, 7, 100, 1000, 4095, 4096)) for _ in range(300)]
    pattern = Pattern(2, sum(sizes))
    stream = conn.make_syn()
    at = 0
    for size in sizes:
        stream += conn.make_data(pattern.read(at, size))
        at += size
    lp.send(stream + conn.make_fin())
    peer = steps.connected(lab, conn)
    peer.inbox.expect(pattern)
    steps.completes(lab, peer.inbox)
    steps.sees_eof(lab, peer)
    return f"{len(sizes)} messages, {pattern.size} bytes"


@check(1, "slow-server")
def slow_server(lab: Lab) -> str:
    """A server that reads late and little: RP keeps what the socket did not take"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab, Peer.pause, rcvbuf=8 * KIB)).syn()
    peer = steps.connected(lab, conn)
    pattern = Pattern(3, 3 * MIB)
    peer.inbox.expect(pattern)
    conn.start_upload(pattern)
    lab.watch_for(0.7, lambda: conn.over, f"RP ended {conn} because its server was slow")
    peer.resume()
    return f"3 MiB after 0.7 s, {steps.completes(lab, peer.inbox)}"


@check(1, "slow-pipe")
def slow_pipe(lab: Lab) -> str:
    """A pipe that is not read for a while: RP keeps what the socket did not take"""
    lp = steps.start(lab, 1, rcvbuf=16 * KIB)
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    pattern = Pattern(4, 6 * MIB)
    conn.inbox.expect(pattern)
    lp.pause()
    peer.stream(pattern)
    lab.watch_for(0.7, lambda: peer.ended, f"RP ended {conn} because its pipe was slow")
    lp.resume()
    return f"6 MiB after 0.7 s, {steps.completes(lab, conn.inbox)}"


@check(1, "both-ways")
def both_ways(lab: Lab) -> str:
    """Upload and download at the same time"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    up, down = Pattern(5, 4 * MIB), Pattern(6, 4 * MIB)
    peer.inbox.expect(up)
    conn.inbox.expect(down)
    conn.start_upload(up)
    peer.stream(down)
    steps.completes(lab, peer.inbox)
    steps.completes(lab, conn.inbox)
    return "4 MiB each way"


@check(1, "big-upload", seconds=25)
def big_upload(lab: Lab) -> str:
    """8 MiB up over one pipe, by hash"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab)).syn()
    return f"8 MiB, {steps.upload(lab, conn, 8 * MIB, 7, 20)}"


@check(1, "big-download", seconds=25)
def big_download(lab: Lab) -> str:
    """8 MiB down over one pipe, by hash"""
    lp = steps.start(lab, 1)
    conn = lp.dial(Server(lab)).syn()
    digest = steps.download(lab, conn, 8 * MIB, 8, 20)
    return f"8 MiB in {conn.expected} messages, {digest}"


@check(1, "lp-fin")
def lp_fin(lab: Lab) -> str:
    """LP's FIN: the server gets all data, then the end"""
    lp = steps.start(lab, 1)
    server = Server(lab)
    for size in (0, 1, wire.PAYLOAD_MAX, 200 * KIB):
        conn = lp.dial(server).syn()
        peer = steps.connected(lab, conn)
        pattern = Pattern(9, size)
        peer.inbox.expect(pattern)
        for at in range(0, size, wire.PAYLOAD_MAX):
            conn.data(pattern.read(at, wire.PAYLOAD_MAX))
        conn.fin()
        steps.sees_eof(lab, peer)
        steps.completes(lab, peer.inbox)
        peer.close()
    return "after 0 bytes, 1 byte, 4 KiB and 200 KiB"


@check(1, "server-fin")
def server_fin(lab: Lab) -> str:
    """The server closes: all data, then FIN 0x88 with the next number; RP closes too"""
    lp = steps.start(lab, 1)
    server = Server(lab)
    for size in (0, 1, wire.PAYLOAD_MAX, 200 * KIB):
        conn = lp.dial(server).syn()
        peer = steps.connected(lab, conn)
        pattern = Pattern(10, size)
        conn.inbox.expect(pattern)
        peer.stream(pattern, then=peer.shutdown)
        steps.fin_comes(lab, conn, wire.BY_FIN)
        steps.completes(lab, conn.inbox)
        lab.until(lambda p=peer: p.ended, f"RP to close its end too after the FIN of {conn}")
        peer.close()
    return "after 0 bytes, 1 byte, 4 KiB and 200 KiB"


@check(1, "server-reset")
def server_reset(lab: Lab) -> str:
    """The server resets: FIN 0x99 with the next number"""
    lp = steps.start(lab, 1)
    server = Server(lab)
    for size in (0, 1, 1000):
        conn = lp.dial(server).syn()
        peer = steps.connected(lab, conn)
        conn.data(TEXT)  # without it a reset at once looks to RP as a connect that fails
        steps.arrives(lab, peer.inbox, TEXT)
        peer.send(b"x" * size)
        steps.arrives(lab, conn.inbox, b"x" * size)
        due = conn.expected
        peer.reset()
        steps.fin_comes(lab, conn, wire.BY_RESET, due)
    return "after 0, 1 and 1000 bytes"


@check(1, "sequential")
def sequential(lab: Lab) -> str:
    """30 connections one after another, ended by LP and by the server in turn"""
    lp = steps.start(lab, 1)
    return run_in_sequence(lab, lp, 30)


def run_in_sequence(lab: Lab, lp: LocalProxy, count: int) -> str:
    server = steps.echo_server(lab)
    for turn in range(count):
        conn = lp.dial(server).syn()
        steps.echoes(lab, conn, TEXT * (turn + 1))
        peer = steps.connected(lab, conn)
        if turn % 3 == 0:
            steps.lp_closes(lab, conn)
        elif turn % 3 == 1:
            peer.close()
            steps.fin_comes(lab, conn, wire.BY_FIN)
        else:
            peer.reset()
            steps.fin_comes(lab, conn, wire.BY_RESET)
    return f"{count} connections, a third ended by LP, the rest by FIN and RST of the server"


@check(1, "ids")
def ids(lab: Lab) -> str:
    """Connection ids from 1 to 32767, in no order"""
    lp = steps.start(lab, 1)
    server = steps.echo_server(lab)
    for ident in (32767, 1, 255, 256, 257, 1000, 4096, 8191, 16384, 2):
        conn = lp.dial(server, ident).syn()
        steps.echoes(lab, conn, TEXT)
        steps.lp_closes(lab, conn)
    return "10 ids"
