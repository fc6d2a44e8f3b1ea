# SPDX-License-Identifier: MIT
"""The tests' own readers leave nothing behind when a test fails."""

import socket
import threading

import pytest

from tests.relay.ends import reading


def test_who_reads_beside_a_block_that_fails_has_ended_with_it() -> None:
    """Before its descriptor is closed, whose number the next file gets."""
    ours, theirs = socket.socketpair()
    before = threading.active_count()
    with theirs, pytest.raises(AssertionError, match="a test that fails"):
        with ours, reading(ours, 60.0):
            assert threading.active_count() == before + 1
            raise AssertionError("a test that fails")
    assert threading.active_count() == before


def test_what_was_read_is_told() -> None:
    ours, theirs = socket.socketpair()
    with theirs, ours, reading(ours) as ended:
        theirs.sendall(b"seven b")
        theirs.shutdown(socket.SHUT_WR)
        end = ended()
    assert (end.how, end.size) == ("eof", 7)
