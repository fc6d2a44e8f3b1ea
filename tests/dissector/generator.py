# SPDX-License-Identifier: MIT
"""Random sessions over lossy pipes, as packets, with all that a dissector ought to find.

What a message *is* comes from the one who made it; where it stands in the order is worked
out here by the simplest model there is, one that looks at the whole connection at once.
"""

import random
from dataclasses import dataclass, field

from tests.dissector import messages as wire
from tests.dissector.packets import ACK, EPOCH_US, PSH, Capture, Endpoint, TcpStream, tcp_packet

UP, DOWN = True, False


@dataclass
class Sent:
    """A message: what it is, and what is known of it when the capture is over."""

    conn: "Connection"
    up: bool
    number: int
    kind: str  # data, syn, fin
    raw: bytes
    time_us: int
    payload: bytes = b""
    reason: int = 0
    pipe: int = -1
    copy: bool = False
    # Found out when the packets are laid out.
    arrived_us: int = -1
    packet: int = -1
    resent: bool = False
    held_us: int = 0
    key: tuple[int, int] = (0, 0)
    # Found out by `judge`.
    order: str = ""
    wait_us: int | None = None
    filled_by: "Sent | None" = None
    original: "Sent | None" = None


@dataclass
class Connection:
    id: int
    address: str
    port: int
    sent: list[Sent] = field(default_factory=list)
    index: int = -1


@dataclass(frozen=True)
class Piece:
    """One TCP segment of a pipe, when it is captured, and whether that was its second try."""

    time_us: int
    start: int
    payload: bytes
    resent: bool


@dataclass
class Session:
    """A local proxy with its pipes and connections."""

    lp: str
    rp: str
    pipes: int
    start_us: int
    port: int = 6000
    connections: list[Connection] = field(default_factory=list)

    def sent(self) -> list[Sent]:
        return [message for conn in self.connections for message in conn.sent]


def make_connection(rng: random.Random, id_: int, time_us: int, port: int) -> Connection:
    address = f"192.0.2.{rng.randint(1, 254)}"
    conn = Connection(id_, address, port)
    now = time_us
    conn.sent.append(Sent(conn, UP, 0, "syn", wire.syn(id_, address, port), now))
    for up in (UP, DOWN):
        number = 1 if up else 0
        now = time_us + (0 if up else rng.randint(100, 30_000))
        for _ in range(rng.choice([0, 1, 2, 3, 5, 9])):
            now += rng.choice([0, 0, 20, 500, 4000])
            size = rng.choice([1, 2, 9, 100, 1440, 4095, 4096])
            payload = rng.randbytes(size)
            raw = wire.data(id_, number, payload)
            conn.sent.append(Sent(conn, up, number, "data", raw, now, payload))
            number += 1
        if rng.random() < 0.6:
            reason = rng.choice([wire.FIN_ORDER, wire.FIN_RESET])
            raw = wire.fin(id_, number, reason)
            conn.sent.append(Sent(conn, up, number, "fin", raw, now + 50, reason=reason))
    return conn


def add_copies(rng: random.Random, conn: Connection) -> None:
    """Some messages once more, on another pipe: a receiver drops the second to come."""
    for message in list(conn.sent):
        if message.kind == "data" and rng.random() < 0.05:
            again = Sent(
                conn,
                message.up,
                message.number,
                "data",
                message.raw,
                message.time_us + rng.randint(0, 9000),
                message.payload,
                copy=True,
            )
            conn.sent.append(again)


def make_session(rng: random.Random, number: int, start_us: int) -> Session:
    session = Session(
        f"10.{number >> 8 & 255}.{number & 255}.1",
        f"10.{number >> 8 & 255}.{number & 255}.2",
        rng.randint(1, 4),
        start_us,
    )
    time_us = start_us + 2000
    for id_ in rng.sample(range(1, 65536), rng.randint(1, 4)):
        conn = make_connection(rng, id_, time_us, rng.randint(20_000, 40_000))
        if session.pipes > 1 and rng.random() < 0.3:
            add_copies(rng, conn)
        session.connections.append(conn)
        time_us += rng.choice([0, 300, 20_000])
    for conn in session.connections:
        for message in conn.sent:
            message.pipe = rng.randrange(session.pipes)
        originals = {(m.up, m.number): m for m in conn.sent if not m.copy}
        for message in conn.sent:
            if message.copy:
                used = originals[message.up, message.number].pipe
                message.pipe = (used + 1) % session.pipes
    return session


def cut(rng: random.Random, length: int, message_ends: list[int]) -> list[int]:
    """Where a stream of bytes is cut into segments."""
    style = rng.choice(["mss", "random", "messages", "tiny", "joined"])
    if style == "mss":
        cuts = list(range(1448, length, 1448))
    elif style == "messages":
        cuts = list(message_ends)
    elif style == "joined":
        cuts = list(range(9000, length, 9000))
    elif style == "tiny":
        cuts = list(range(rng.randint(1, 7), min(length, 400), 7)) + list(range(400, length, 1448))
    else:
        cuts = [rng.randrange(1, length) for _ in range(rng.randint(0, 8))] if length > 1 else []
        cuts += list(range(30_000, length, 30_000))
    return sorted({at for at in cuts if 0 < at < length} | {length})


def lay_out_stream(
    rng: random.Random, stream: list[Sent], delay_us: int, loss: float
) -> list[Piece]:
    """The segments of one direction of a pipe in the order in which they are captured."""
    ends, raw, at = [], b"".join(m.raw for m in stream), 0
    for message in stream:
        at += len(message.raw)
        ends.append(at)
    pieces, start, clock, blocked_until = [], 0, 0, 0
    for stop in cut(rng, len(raw), ends):
        first = next(i for i, end in enumerate(ends) if end > start)
        last = next(i for i, end in enumerate(ends) if end >= stop)
        ready = max(m.time_us for m in stream[first : last + 1])
        clock = max(clock + 5, ready + delay_us + rng.choice([0, 0, 30, 900]))
        # A hole is closed before the next one opens, with some segments behind it.
        if rng.random() < loss and clock > blocked_until:
            again = clock + rng.randint(50, 40_000)
            blocked_until = again + 1
            pieces.append(Piece(again, start, raw[start:stop], True))
        else:
            pieces.append(Piece(clock, start, raw[start:stop], False))
        start = stop
    return sorted(pieces, key=lambda piece: piece.time_us)


def by_start(piece: Piece) -> int:
    return piece.start


def note_arrivals(stream: list[Sent], pieces: list[Piece], packets: list[int]) -> None:
    """When is the last byte of each message there, with all before it on its pipe?"""
    ends, at = [], 0
    for message in stream:
        at += len(message.raw)
        ends.append(at)
    there: set[int] = set()
    length_of = {piece.start: len(piece.payload) for piece in pieces}
    done, nearest = 0, 0
    for piece, packet in zip(pieces, packets, strict=True):
        hole = any(start > done for start in there)
        there.add(piece.start)
        while done in there:
            there.discard(done)
            done += length_of[done]
        while nearest < len(stream) and ends[nearest] <= done:
            message = stream[nearest]
            message.arrived_us, message.packet = piece.time_us, packet
            message.resent = hole
            last = max((each for each in pieces if each.start < ends[nearest]), key=by_start)
            message.held_us = piece.time_us - last.time_us
            nearest += 1


def lay_out_way(
    rng: random.Random, session: Session, streams: list[TcpStream], up: bool, loss: float
) -> None:
    """One direction of all pipes."""
    for pipe, tcp in enumerate(streams):
        # A pipe carries what it was given in the order of time.
        stream = sorted(
            (m for m in session.sent() if m.pipe == pipe and m.up == up), key=lambda m: m.time_us
        )
        if not stream:
            continue
        delay = rng.choice([100, 100, 2000, 15_000])
        pieces = lay_out_stream(rng, stream, delay, loss)
        base = tcp.up_next if up else tcp.down_next
        near, far = (tcp.client, tcp.server) if up else (tcp.server, tcp.client)
        packets = []
        for piece in pieces:
            packets.append(len(tcp.capture.packets))
            packet = tcp_packet(near, far, base + piece.start, piece.payload, PSH | ACK)
            tcp.capture.add(piece.time_us, packet)
        note_arrivals(stream, pieces, packets)


def lay_out(rng: random.Random, session: Session, capture: Capture, loss: float) -> None:
    server = Endpoint(session.rp, session.port)
    streams = [
        TcpStream(capture, Endpoint(session.lp, 40_000 + pipe), server)
        for pipe in range(session.pipes)
    ]
    for pipe, tcp in enumerate(streams):
        tcp.open(session.start_us + pipe * 10)
    lay_out_way(rng, session, streams, UP, loss)
    for conn in session.connections:
        # RP answers nothing before it has the SYN.
        begun = max(m.arrived_us for m in conn.sent if m.kind == "syn")
        first = min((m.time_us for m in conn.sent if not m.up), default=begun + 1)
        for message in conn.sent:
            if not message.up:
                message.time_us += max(0, begun + 1 - first)
    lay_out_way(rng, session, streams, DOWN, loss)


def judge(session: Session) -> None:
    """In order, early, late, copy: from the whole of each direction of each connection."""
    for conn in session.connections:
        for up in (UP, DOWN):
            lane = sorted((m for m in conn.sent if m.up == up), key=lambda m: m.key)
            first: dict[int, Sent] = {}
            for message in lane:
                if message.number in first:
                    message.order, message.original = "copy", first[message.number]
                else:
                    first[message.number] = message
            due: Sent | None = None
            for number in range(max(first, default=-1) + 1):
                message = first.get(number)
                if message is None:
                    break
                if due is None or message.key > due.key:
                    due = message
                message.wait_us = due.arrived_us - message.arrived_us
                message.filled_by = due if due is not message else None
            for message in first.values():
                if message.wait_us is None or message.filled_by is not None:
                    message.order = "early"
                else:
                    released = any(m.filled_by is message for m in first.values())
                    late = "late, resent" if message.resent else "late"
                    message.order = late if released else "in order"


def number_frames(sessions: list[Session], capture: Capture) -> dict[int, int]:
    """From a packet's place in the capture's list to its frame number in the file."""
    order = sorted(range(len(capture.packets)), key=lambda i: capture.packets[i][:2])
    frame_of = {packet: frame for frame, packet in enumerate(order, 1)}
    for session in sessions:
        # Of one frame's messages the earlier in the pipe's stream comes first.
        for place, message in enumerate(sorted(session.sent(), key=lambda m: m.time_us)):
            message.key = (frame_of.get(message.packet, 0), place)
    return frame_of


def epoch(time_us: int) -> float:
    return (EPOCH_US + time_us) / 1e6


def make_sessions(
    seed: int, count: int, loss: float = 0.15
) -> tuple[list[Session], Capture, dict[int, int]]:
    """`count` sessions in one capture, each with addresses of its own, half of them overlapping."""
    rng = random.Random(seed)
    capture, sessions, start = Capture(), [], 0
    for number in range(count):
        session = make_session(rng, number, start)
        lay_out(rng, session, capture, loss)
        sessions.append(session)
        start += rng.choice([5_000, 400_000])
    frame_of = number_frames(sessions, capture)
    for session in sessions:
        judge(session)
    return sessions, capture, frame_of
