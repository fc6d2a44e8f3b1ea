# SPDX-License-Identifier: MIT
"""The account of who waited for whose loss, on captures whose answer is known."""

import struct
from pathlib import Path

import pytest

from experiments.workloads import pcap
from experiments.workloads.blocking import _without, account, messages, pipes_of
from experiments.workloads.pcap import Segment

WAY_S, AGAIN_S = 0.025, 0.1


def message(connection: int, number: int, size: int = 100) -> bytes:
    return struct.pack("<HIH", connection, number, size + 8) + bytes(size)


class Wire:
    """Pipes by port: what is sent on them arrives after WAY_S, or AGAIN_S later if it is lost."""

    def __init__(self) -> None:
        self.sent: list[Segment] = []
        self.came: list[Segment] = []
        self.at: dict[int, int] = {}

    def send(
        self, time: float, port: int, data: bytes, lost: bool = False, way: float = WAY_S
    ) -> None:
        seq = self.at.get(port, 0xFFFFFF00) & 0xFFFFFFFF
        self.at[port] = seq + len(data)
        self.sent.append(Segment(time, port, seq, int(time * 1000), data))
        if lost:
            time += AGAIN_S
            self.sent.append(Segment(time, port, seq, int(time * 1000), data))
        self.came.append(Segment(time + way, port, seq, int(time * 1000), data))

    def account(self, since: float = -1.0) -> dict[int, dict[str, float]]:
        for some in (self.sent, self.came):
            some.sort(key=lambda it: it.time)
        return account(self.sent, self.came, since)


def test_without_loss_nothing_is_late() -> None:
    wire = Wire()
    for n in range(20):
        wire.send(n / 100, 1 + n % 3, message(1 + n % 2, n // 2))
    for told in wire.account().values():
        assert told["own"] == told["others"] == told["order"] == 0
        assert told["lived"] == pytest.approx(0.18 + WAY_S, abs=0.011)


def test_in_one_pipe_a_loss_is_everybodys() -> None:
    """Connection 1 loses its message; 2's, sent 10 ms later, lies behind the hole."""
    wire = Wire()
    for n in range(10):
        wire.send(n, 1, message(1, n), lost=n == 5)
        wire.send(n + 0.01, 1, message(2, n))
    told = wire.account()
    assert told[1]["own"] == pytest.approx(AGAIN_S)
    assert told[2]["others"] == pytest.approx(AGAIN_S - 0.01)
    assert told[1]["others"] == told[2]["own"] == 0
    assert told[1]["order"] == told[2]["order"] == 0


def test_another_pipe_is_not_behind_the_hole() -> None:
    """2 goes on; what 1 has on the other pipe waits, for 1's own loss."""
    wire = Wire()
    for n in range(10):
        wire.send(n / 50, 1 if n == 5 else 2, message(1, n), lost=n == 5)
        wire.send(n / 50 + 0.01, 2, message(2, n))
    told = wire.account()
    assert told[2]["own"] == told[2]["others"] == told[2]["order"] == 0
    assert told[1]["own"] == pytest.approx(AGAIN_S)
    assert told[1]["others"] == told[1]["order"] == 0


def test_who_waits_in_another_pipe_for_one_behind_a_hole() -> None:
    """2's message 5 lies behind 1's hole; its 6 is there by the other pipe: all others' loss."""
    wire = Wire()
    for n in range(10):
        wire.send(n / 50, 1, message(1, n), lost=n == 5)
        wire.send(n / 50 + 0.001, 1 if n == 5 else 2, message(2, n))
    told = wire.account()
    assert told[2]["others"] == pytest.approx(AGAIN_S - 0.001)
    assert told[2]["own"] == 0
    assert told[1]["own"] == pytest.approx(AGAIN_S)


def test_a_slower_pipe_is_no_loss() -> None:
    wire = Wire()
    wire.send(0.0, 1, message(1, 0), way=0.07)
    wire.send(0.0, 2, message(1, 1))
    told = wire.account()
    assert told[1]["order"] == pytest.approx(0.045)
    assert told[1]["own"] == told[1]["others"] == 0


def test_a_lost_packet_with_two_connections_messages() -> None:
    """Each lost its own; a third one behind them waits for others'."""
    wire = Wire()
    wire.send(0.0, 1, message(3, 0))
    wire.send(0.1, 1, message(1, 0) + message(2, 0), lost=True)
    wire.send(0.11, 1, message(3, 1))
    told = wire.account()
    assert told[1]["own"] == told[2]["own"] == pytest.approx(AGAIN_S)
    assert told[3]["others"] == pytest.approx(AGAIN_S - 0.01)


def test_a_packet_sent_again_with_its_neighbour() -> None:
    """The kernel may send two small ones again as one: what was there already came before."""
    data = message(1, 0), message(2, 0)
    sent = [Segment(0.0, 1, 0, 0, data[0]), Segment(0.01, 1, 108, 10, data[1])]
    both = Segment(0.1, 1, 0, 100, b"".join(data))
    came = [sent[1]._replace(time=0.035), both._replace(time=0.125)]
    (pipe,) = pipes_of([*sent, both], came)
    first, second = pipe.messages
    assert (pipe.arrived_at(first), pipe.arrived_at(second)) == (0.125, 0.035)
    assert pipe.readable_at(second) == 0.125
    assert pipe.was_lost(first) and not pipe.was_lost(second)


def test_control_and_copies_of_the_extension_are_no_messages_of_connections() -> None:
    """What was lost on one pipe came on another: the connection did not wait for it."""
    wire = Wire()
    wire.send(0.0, 1, message(1, 0) + message(0, 0))
    wire.send(0.1, 1, message(1, 1), lost=True)
    wire.send(0.1, 2, message(1, 1))
    wire.send(0.11, 2, message(1, 2) + message(0, 0))
    told = wire.account()
    assert set(told) == {1}
    assert sum(told[1][cause] for cause in ("own", "others", "order")) == 0


def test_ranges() -> None:
    assert _without(0, 10, []) == [(0, 10)]
    assert _without(0, 10, [(0, 3), (5, 7)]) == [(3, 5), (7, 10)]
    assert _without(4, 6, [(0, 3), (5, 7)]) == [(4, 5)]
    assert _without(1, 2, [(0, 3)]) == []


def test_what_is_no_message_is_told() -> None:
    assert [it.number for it in messages(message(1, 0) + message(1, 1)[:50])] == [0]
    with pytest.raises(ValueError, match="no message begins at byte 108"):
        list(messages(message(1, 0) + struct.pack("<HIH", 1, 1, 3) + bytes(20)))


def test_a_capture_is_read(tmp_path: Path) -> None:
    options = struct.pack("!BBBBII", 1, 1, 8, 10, 4711, 1)
    tcp = struct.pack("!HHIIBBHHH", 6000, 4000, 77, 1, 8 << 4, 24, 0, 0, 0) + options + b"hello"
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, b"\1" * 4, b"\2" * 4)
    frame = bytes(12) + b"\x08\x00" + ip + tcp + b"padding"
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    packet = struct.pack("<IIII", 5, 250_000, len(frame), len(frame)) + frame
    path = tmp_path / "x.pcap"
    path.write_bytes(head + packet + packet[:-3])
    assert list(pcap.segments(path)) == [Segment(5.25, 4000, 77, 4711, b"hello")]
    path.write_bytes(b"no capture at all, but long enough")
    with pytest.raises(ValueError, match="no capture"):
        list(pcap.segments(path))


def test_what_the_other_end_did_not_capture_yet() -> None:
    """A control message, and one of a connection that is older than the account, went by before."""
    wire = Wire()
    wire.send(0.0, 1, message(0, 0) + message(7, 3))
    wire.came.clear()
    for n in range(10):
        wire.send(1 + n / 50, 1, message(1, n), lost=n == 5)
        wire.send(1 + n / 50 + 0.001, 1, message(7, 4 + n))
    told = wire.account(since=0.5)
    assert set(told) == {1}
    assert told[1]["own"] == pytest.approx(AGAIN_S)
    assert told[1]["lived"] == pytest.approx(5 / 50 + AGAIN_S + WAY_S)


def test_what_was_sent_before_any_capture_comes_late() -> None:
    """A packet whose first sending nobody saw is sent again: no byte of it is of the account."""
    wire = Wire()
    wire.at[1] = 0xFFFFFE00
    wire.send(0.0, 1, message(7, 3))
    older = wire.came.pop()
    wire.sent.pop()
    wire.send(1.0, 1, message(1, 0))
    wire.came.append(older._replace(time=1.01))
    assert wire.account()[1]["lived"] == pytest.approx(WAY_S)


def test_a_hole_in_a_capture_is_told() -> None:
    wire = Wire()
    for n in range(3):
        wire.send(n / 50, 1, message(1, n))
    del wire.sent[1]
    with pytest.raises(ValueError, match="from byte 108 on was not captured"):
        wire.account()
