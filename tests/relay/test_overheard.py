# SPDX-License-Identifier: MIT
"""Without keys a HELLO can be read on its way: what it is good for to who says it again."""

import struct
from contextlib import ExitStack
from pathlib import Path

from tests.relay import wire_ext
from tests.relay.netns import Namespace
from tests.relay.proxies import LISTEN, remote_proxy
from tests.relay.strangers import ping, pipe_from, session_of
from tests.relay.wire import Pipe

PONG = 6


def test_a_hello_that_was_overheard(box: Namespace, tmp_path: Path) -> None:
    """Said again, to the byte, it gets nobody into the session: neither from elsewhere nor from
    where it came, or by another index of a pipe. Whose it is does not notice."""
    name = b"overheard".ljust(16, b".")
    with (
        remote_proxy(box, tmp_path, *LISTEN) as rp,
        session_of(box, "127.0.0.5", name, pipes=2).sock as own,
        ExitStack() as stack,
    ):
        mine = Pipe(own)
        features = wire_ext.VERSION_1 | wire_ext.DATAGRAM
        said = [wire_ext.Hello(name, pipe, 2, features=features).to_bytes() for pipe in (0, 1)]
        for hello in said:
            pipe = Pipe(stack.enter_context(pipe_from(box, "127.0.0.6")))
            pipe.send(hello)
            assert wire_ext.status_of(pipe.receive()) == wire_ext.UNKNOWN
            assert pipe.ended(5)
        rp.expect("a pipe from 127.0.0.6 was sent away: it wants session 1, which is of 127.0.0.5")
        pipe = Pipe(stack.enter_context(pipe_from(box, "127.0.0.5")))
        pipe.send(said[0])
        assert pipe.ended(5)
        rp.expect("session 1: pipe 0 may not join: its incarnation is not above the last")
        mine.send(ping(7))
        answer = mine.receive()
        assert answer is not None and answer.body[:9] == struct.pack("<BQ", PONG, 7)
        assert not rp.lines("session 2|session 1 .*ended")
