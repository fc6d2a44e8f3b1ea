# SPDX-License-Identifier: MIT
"""What many checks do."""

from __future__ import annotations

from . import wire
from .failure import Failure
from .lab import Lab
from .lp import Conn, LocalProxy
from .server import EchoServer, Peer, Server
from .stream import Inbox, Pattern

LISTEN_S = 5.0
KIB = 1 << 10
MIB = 1 << 20
TEXT = b"The quick brown fox jumps over the lazy dog. "


def start(lab: Lab, pipes: int, rcvbuf: int = 0, max_files: int = 0) -> LocalProxy:
    """RP and a local proxy with all its pipes."""
    lab.start_remote(pipes, max_files)
    return join(lab, pipes, rcvbuf=rcvbuf)


def join(lab: Lab, pipes: int, address: str = "127.0.0.1", rcvbuf: int = 0) -> LocalProxy:
    """One more local proxy with all its pipes."""
    return LocalProxy(lab, address).open_pipes(pipes, LISTEN_S * lab.patience, rcvbuf)


def more_than_buffers(lab: Lab) -> int:
    """Bytes that three unread pipes and all sockets on the way cannot hold.

    In a namespace the segments, and with them the buffers that the kernel grants, are small.
    """
    return (12 if lab.isolated else 32) * MIB


def echo_server(lab: Lab) -> Server:
    """The lab's one server for checks that only want an answer."""
    known = (server for server in lab.servers if isinstance(server, EchoServer))
    return next(known, None) or EchoServer(lab)


def connected(lab: Lab, conn: Conn, seconds: float = 5.0) -> Peer:
    lab.until(lambda: conn.peer or conn.over, f"RP to connect {conn}", seconds)
    if conn.peer is None:
        raise Failure(f"{conn}: a FIN (0x{conn.reason:02x}) came instead of a connection")
    return conn.peer


def arrives(lab: Lab, inbox: Inbox, sent: bytes, seconds: float = 5.0) -> None:
    """Exactly these bytes, and no others."""
    what = f"the {inbox.name} to get {len(sent)} bytes"
    try:
        lab.until(lambda: inbox.same_as(sent), what, seconds)
    except Failure as failure:
        raise Failure(f"{failure} ({len(inbox)} came)") from None


def completes(lab: Lab, inbox: Inbox, seconds: float = 15.0) -> str:
    """All of the expected stream; gives its hash."""
    assert inbox.expected is not None
    what = f"{inbox.expected.size} bytes at the {inbox.name}"
    try:
        lab.until(lambda: inbox.complete, what, seconds, progress=lambda: len(inbox))
    except Failure as failure:
        raise Failure(f"{failure} ({len(inbox)} came)") from None
    return f"sha256 {inbox.digest.hexdigest()[:12]}"


def echoes(lab: Lab, conn: Conn, data: bytes, pipe: int | None = None, seconds: float = 5) -> None:
    """One message out and the same bytes back."""
    sent = bytes(conn.inbox.data) + data
    conn.data(data, pipe)
    lab.until(lambda: conn.inbox.same_as(sent), f"the echo of {len(data)} bytes on {conn}", seconds)


def works(lab: Lab, lp: LocalProxy, seconds: float = 5.0) -> Conn:
    """A connection opened, used and closed: RP is in order."""
    conn = lp.dial(echo_server(lab)).syn()
    echoes(lab, conn, TEXT, seconds=seconds)
    lp_closes(lab, conn)
    return conn


def lp_closes(lab: Lab, conn: Conn, reason: int = wire.BY_FIN) -> None:
    """LP's FIN; the server is to see the end, and then goes too."""
    conn.fin(reason)
    peer = conn.peer
    assert peer is not None
    lab.until(lambda: peer.ended, f"the server of {conn} to see the end after LP's FIN")
    peer.close()


def sees_eof(lab: Lab, peer: Peer, seconds: float = 5.0) -> None:
    lab.until(lambda: peer.ended, f"the server of {peer.conn} to see the end", seconds)
    if not peer.eof:
        raise Failure(
            f"the server of {peer.conn} saw a reset, not an orderly end, after "
            f"{len(peer.inbox)} bytes"
        )


def fin_comes(lab: Lab, conn: Conn, reason: int, number: int | None = None) -> None:
    """RP's FIN with this reason, due, and with this number if one is given."""
    lab.until(lambda: conn.over, f"RP's FIN for {conn}")
    if conn.reason != reason:
        raise Failure(f"{conn}: RP's FIN says 0x{conn.reason:02x}, not 0x{reason:02x}")
    if number is not None and conn.last != number:
        raise Failure(f"{conn}: RP's FIN has number {conn.last}, not {number}")


def upload(lab: Lab, conn: Conn, size: int, seed: int, seconds: float = 15.0) -> str:
    """A long upload over all pipes in turn; gives its hash."""
    pattern = Pattern(seed, size)
    peer = connected(lab, conn)
    peer.inbox.expect(pattern)
    conn.start_upload(pattern)
    return completes(lab, peer.inbox, seconds)


def download(lab: Lab, conn: Conn, size: int, seed: int, seconds: float = 15.0) -> str:
    """A long download; gives its hash."""
    pattern = Pattern(seed, size)
    peer = connected(lab, conn)
    conn.inbox.expect(pattern)
    peer.stream(pattern)
    return completes(lab, conn.inbox, seconds)
