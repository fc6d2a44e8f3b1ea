# SPDX-License-Identifier: MIT
"""Level 2: connections one after another over several pipes, messages in any order."""

from __future__ import annotations

import itertools

from .. import steps, wire
from ..failure import Failure
from ..lab import Lab
from ..lp import Conn, LocalProxy
from ..registry import check
from ..server import Peer, Server
from ..steps import KIB, MIB, TEXT
from ..stream import Pattern
from .level1 import run_in_sequence


def _every_pipe(lab: Lab, count: int) -> str:
    lp = steps.start(lab, count)
    conn = lp.dial(steps.echo_server(lab)).syn(0)
    for pipe in range(count):
        steps.echoes(lab, conn, TEXT, pipe)
    steps.lp_closes(lab, conn)
    return f"{count} pipes, one message over each"


@check(2, "pipes-2")
def pipes_2(lab: Lab) -> str:
    """RP started for 2 pipes takes messages from both"""
    return _every_pipe(lab, 2)


@check(2, "pipes-16")
def pipes_16(lab: Lab) -> str:
    """RP started for 16 pipes takes messages from each"""
    return _every_pipe(lab, 16)


@check(2, "pipes-slowly")
def pipes_slowly(lab: Lab) -> str:
    """Pipes that are opened with pauses between them"""
    lab.start_remote(4)
    lp = LocalProxy(lab)
    for count in range(1, 5):
        lp.open_pipes(count, steps.LISTEN_S * lab.patience)
        lab.watch_for(0.2, lambda: lp.pipes[0].bytes_in, "RP sent something unasked")
    steps.works(lab, lp)
    return "4 pipes with 0.2 s between them"


def play_orders(lab: Lab, orders: list[tuple[int, ...]], parts: int) -> str:
    """Whole connections, messages in the given orders; message k goes over pipe k + turn."""
    lp = steps.start(lab, 4)
    server = Server(lab)
    for turn, order in enumerate(orders):
        conn = lp.dial(server)
        payloads = [bytes([65 + k]) * (k * 100 + 1) for k in range(parts)]
        messages = [conn.make_syn(), *(conn.make_data(p) for p in payloads), conn.make_fin()]
        for k in order:
            lp.send(messages[k], (k + turn) % 4)
            lab.settle()
        try:
            peer = steps.connected(lab, conn)
            steps.sees_eof(lab, peer)
            steps.arrives(lab, peer.inbox, b"".join(payloads))
        except Failure as failure:
            raise Failure(f"messages sent in the order {order}: {failure}") from None
        peer.close()
    return f"{len(orders)} orders, {len(orders) * (parts + 2)} messages"


@check(2, "permutations", seconds=30)
def permutations(lab: Lab) -> str:
    """After the SYN, every order of four data messages and the FIN over 4 pipes"""
    orders = [(0, *rest) for rest in itertools.permutations(range(1, 6))]
    return play_orders(lab, orders, 4)


@check(2, "data-before-syn", seconds=30)
def data_before_syn(lab: Lab) -> str:
    """Every order of SYN, three data messages and FIN in which the SYN is not first"""
    orders = [order for order in itertools.permutations(range(5)) if order[0] != 0]
    return play_orders(lab, orders, 3)


@check(2, "cut-on-two-pipes")
def cut_on_two_pipes(lab: Lab) -> str:
    """Messages cut in the middle on two pipes at once, at every byte"""
    lp = steps.start(lab, 2)
    server = Server(lab)
    cuts = range(1, 20)
    for cut in cuts:
        conn = lp.dial(server).syn(0)
        one, two = conn.make_data(b"one, two,  "), conn.make_data(b"three, four")
        for piece, pipe in ((one[:cut], 0), (two[:-cut], 1), (one[cut:], 0), (two[-cut:], 1)):
            lp.send(piece, pipe)
            lab.settle()
        peer = steps.connected(lab, conn)
        try:
            steps.arrives(lab, peer.inbox, b"one, two,  three, four")
        except Failure as failure:
            raise Failure(f"cut after byte {cut}: {failure}") from None
        steps.lp_closes(lab, conn)
    return f"{len(cuts)} cuts"


@check(2, "gap-held")
def gap_held(lab: Lab) -> str:
    """A gap open for 2 s: later messages and the FIN wait for it"""
    lp = steps.start(lab, 4)
    conn = lp.dial(Server(lab)).syn(0)
    peer = steps.connected(lab, conn)
    sent = [b"%d " % k for k in range(200)]
    first, *rest = [conn.make_data(piece) for piece in sent]
    for k, message in enumerate([*rest, conn.make_fin()]):
        lp.send(message, 1 + k % 3)
    lab.watch_for(
        2.0,
        lambda: peer.ended or len(peer.inbox),
        "the server got something though message 1 had not arrived",
    )
    lp.send(first, 0)
    steps.sees_eof(lab, peer)
    steps.arrives(lab, peer.inbox, b"".join(sent))
    return "199 messages and the FIN waited 2 s"


@check(2, "gap-large")
def gap_large(lab: Lab) -> str:
    """8 MiB behind a gap"""
    lp = steps.start(lab, 4)
    conn = lp.dial(Server(lab)).syn(0)
    peer = steps.connected(lab, conn)
    pattern = Pattern(20, 8 * MIB)
    peer.inbox.expect(pattern)
    first = conn.make_data(pattern.read(0, wire.PAYLOAD_MAX))
    for at in range(wire.PAYLOAD_MAX, pattern.size, wire.PAYLOAD_MAX):
        lp.send(conn.make_data(pattern.read(at, wire.PAYLOAD_MAX)), 1 + at // 4096 % 3)
    lab.until(lambda: not lp.unsent, "RP to read 8 MiB behind a gap", 10)
    lab.settle(1.0)
    lp.send(first, 0)
    return f"2047 messages held, {steps.completes(lab, peer.inbox)}"


@check(2, "spread-upload", seconds=25)
def spread_upload(lab: Lab) -> str:
    """8 MiB up, each message over a pipe drawn by chance, by hash"""
    lp = steps.start(lab, 4)
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    pattern = Pattern(21, 8 * MIB)
    peer.inbox.expect(pattern)
    at = 0
    while at < pattern.size:
        size = min(lab.random.choice((1000, 4096, 4096)), pattern.size - at)
        pipe = lab.random.randrange(4)
        conn.data(pattern.read(at, size), pipe)
        at += size
        if len(lp.pipes[pipe].out) > 512 * KIB:
            queue = lp.pipes[pipe].out
            lab.until(lambda q=queue: len(q) < 128 * KIB, "RP to read a pipe", 10)
    return f"{conn.number - 1} messages, {steps.completes(lab, peer.inbox)}"


@check(2, "spread-download", seconds=25)
def spread_download(lab: Lab) -> str:
    """8 MiB down over 4 pipes, by hash, then the FIN"""
    lp = steps.start(lab, 4)
    conn = lp.dial(Server(lab)).syn()
    digest = steps.download(lab, conn, 8 * MIB, 22, 20)
    peer = steps.connected(lab, conn)
    peer.shutdown()
    steps.fin_comes(lab, conn, wire.BY_FIN)
    used = sum(pipe.bytes_in > 0 for pipe in lp.pipes)
    return f"{conn.expected} messages over {used} of 4 pipes, {digest}"


@check(2, "blocked-pipe", seconds=45)
def blocked_pipe(lab: Lab) -> str:
    """A pipe that is not read is passed over: the others carry the download"""
    lp = steps.start(lab, 3, rcvbuf=32 * KIB)
    server = Server(lab)
    least = size = steps.more_than_buffers(lab)
    for blocked in lp.pipes:
        conn = lp.dial(server).syn()
        peer = steps.connected(lab, conn)
        pattern = Pattern(23 + blocked.index, size)
        conn.inbox.expect(pattern)
        least = min(least, _download_around(lab, lp, peer, pattern, blocked.index))
        blocked.resume()
        steps.completes(lab, conn.inbox)
        peer.close()
        steps.fin_comes(lab, conn, wire.BY_FIN)
    return f"each of 3 in turn; at least {least >> 20} of {size >> 20} MiB came over the other two"


def _download_around(lab: Lab, lp: LocalProxy, peer: Peer, pattern: Pattern, blocked: int) -> int:
    """Download while one pipe is not read; bytes that the others brought."""
    others = [pipe for pipe in lp.pipes if pipe.index != blocked]

    def brought() -> int:
        return sum(pipe.bytes_in for pipe in others)

    before = brought()
    lp.pipes[blocked].pause()
    peer.stream(pattern)
    try:
        lab.until(
            lambda: not peer.sending and brought() - before > pattern.size // 2,
            "the other pipes to carry the download",
            15,
            progress=brought,
        )
    except Failure as failure:
        raise Failure(
            f"with pipe {blocked + 1} of 3 not read, the other two brought "
            f"{brought() - before} of {pattern.size} bytes: {failure}"
        ) from None
    return brought() - before


@check(2, "all-blocked")
def all_blocked(lab: Lab) -> str:
    """No pipe is read for a second: RP pauses and loses nothing"""
    lp = steps.start(lab, 3, rcvbuf=32 * KIB)
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    pattern = Pattern(26, steps.more_than_buffers(lab))
    conn.inbox.expect(pattern)
    lp.pause()
    peer.stream(pattern)
    lab.watch_for(1.0, lambda: peer.ended, f"RP ended {conn} because all pipes were blocked")
    lp.resume()
    return f"{pattern.size >> 20} MiB, {steps.completes(lab, conn.inbox)}"


@check(2, "upload-while-blocked")
def upload_while_blocked(lab: Lab) -> str:
    """While no downlink can be sent, uplink messages are still delivered"""
    lp = steps.start(lab, 3, rcvbuf=32 * KIB)
    conn = lp.dial(Server(lab)).syn()
    peer = steps.connected(lab, conn)
    down, up = Pattern(27, steps.more_than_buffers(lab)), Pattern(28, 2 * MIB)
    conn.inbox.expect(down)
    peer.inbox.expect(up)
    lp.pause()
    peer.stream(down)
    lab.watch_for(0.3, lambda: peer.ended, f"RP ended {conn} because all pipes were blocked")
    conn.start_upload(up)
    steps.completes(lab, peer.inbox, 5)
    lp.resume()
    steps.completes(lab, conn.inbox)
    return f"2 MiB up while {down.size >> 20} MiB down had to wait"


@check(2, "sequential-spread")
def sequential_spread(lab: Lab) -> str:
    """30 connections one after another over 4 pipes, ended by LP and by the server in turn"""
    return run_in_sequence(lab, steps.start(lab, 4), 30)


def deal(lab: Lab, lp: LocalProxy, conn: Conn, messages: list[bytes]) -> None:
    """Send messages in a random order over random pipes, each arriving before the next."""
    lab.random.shuffle(messages)
    for message in messages:
        lp.send(message, lab.random.randrange(len(lp.pipes)))
        lab.settle(0.02)


@check(2, "shuffled")
def shuffled(lab: Lab) -> str:
    """200 messages dealt to 8 pipes in random order"""
    lp = steps.start(lab, 8)
    conn = lp.dial(Server(lab))
    pattern = Pattern(29, 200 * 500)
    messages = [conn.make_syn()]
    messages += [conn.make_data(pattern.read(at, 500)) for at in range(0, pattern.size, 500)]
    deal(lab, lp, conn, [*messages, conn.make_fin()])
    peer = steps.connected(lab, conn)
    peer.inbox.expect(pattern)
    steps.completes(lab, peer.inbox)
    steps.sees_eof(lab, peer)
    return "SYN, 200 data messages and FIN in random order"
