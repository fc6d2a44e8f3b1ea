# SPDX-License-Identifier: MIT
"""Applications that take little: what they take, and how a download beside them is measured."""

import os
import socket
from typing import Any

import pytest

from experiments.catalogue import slow_reader
from experiments.catalogue.slow_reader import longest_silence_s, rate_of, seen
from experiments.workloads.exchange import CutShort, Reply, Request
from experiments.workloads.pattern import WrongByte, piece
from experiments.workloads.readers import Reader

REQUEST = Request("cubic", down=1 << 30, down_start=5)


class Held:
    """What a reader needs of a connection."""

    def __init__(self) -> None:
        self.sock, self.server = socket.socketpair()
        self.sock.setblocking(False)


def reader() -> tuple[Reader, socket.socket]:
    held: Any = Held()
    return Reader(held, REQUEST), held.server


def test_a_reader_takes_no_more_than_it_may() -> None:
    it, server = reader()
    server.sendall(Reply("cubic", 0, 1).packed()[:10])
    it.take(0)
    assert not it.head, "who takes nothing does not even take the reply"
    it.take(1000)
    server.sendall(Reply("cubic", 0, 1).packed()[10:] + piece(5, 0, 5000))
    it.take(1000)
    assert it.taken == 1000
    it.take(10_000)
    assert it.taken == 5000


def test_a_reader_looks_at_its_bytes_and_at_its_end() -> None:
    it, server = reader()
    server.sendall(Reply("cubic", 0, 1).packed() + piece(6, 0, 100))
    with pytest.raises(WrongByte):
        it.take(100)
    it, server = reader()
    server.close()
    with pytest.raises(CutShort):
        it.take(1)


def test_rates_are_of_what_was_taken_between_two_times() -> None:
    taken = [(1.0, 0), (2.0, 1_000_000), (3.0, 2_000_000), (4.0, 9_000_000)]
    assert rate_of(taken, 1.0, 3.1) == pytest.approx(8.0)
    assert rate_of(taken, 3.5, 9.0) == 0.0


def test_silences_are_bins_without_a_byte() -> None:
    bins = [1, 1, 0, 0, 0, 1, 0]
    assert longest_silence_s(bins, 0.0, 0.7) == pytest.approx(0.3)
    assert longest_silence_s(bins, 0.0, 1.5) == pytest.approx(0.9), "nothing after the last byte"
    assert longest_silence_s(bins, 0.0, 0.2) == 0.0


def test_a_download_is_held_against_what_readers_leave() -> None:
    """40 Mbit/s alone; 20 beside a reader that takes 10."""
    bins = [500_000] * 50 + [250_000] * 50
    taken = [(5.0 + n / 10, n * 125_000) for n in range(51)]
    found = seen(bins, {"resets_s": [5.5, 5.2], "taken": taken}, (5.0, 6.0, 4.0))
    assert (found["alone_mbps"], found["beside_mbps"]) == (pytest.approx(40), pytest.approx(20))
    assert found["readers_mbps"] == pytest.approx(10, 0.01)
    assert found["rate_kept"] == pytest.approx(2 / 3, 0.01)
    assert (found["resets"], found["reset_after_s"]) == (2, pytest.approx(0.2))
    nothing_left = [(at, 100 * total) for at, total in taken]
    assert seen(bins, {"resets_s": [], "taken": nothing_left}, (5.0, 6.0, 4.0))["rate_kept"] is None


def test_memory_is_what_was_resident_at_most() -> None:
    assert 5 < slow_reader.most_resident_mb(os.getpid()) < 5000
