# SPDX-License-Identifier: MIT
"""rp keeps a session without pipes: for --resume seconds, and so many of one address."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.relay import wire_ext
from tests.relay.netns import Namespace
from tests.relay.proxies import remote_proxy
from tests.relay.wire import Pipe

EXTENDED = ("127.0.0.1", wire_ext.PORT)
WAITING_MOST = 4


@contextmanager
def pipe_of(box: Namespace, session: int, incarnation: int = 0) -> Iterator[tuple[Pipe, int]]:
    """The only pipe of a session, and what rp answered."""
    with box.connect(EXTENDED) as sock:
        pipe = Pipe(sock)
        pipe.send(wire_ext.Hello(bytes([session] * 16), 0, 1, incarnation).to_bytes())
        yield pipe, wire_ext.status_of(pipe.receive())


def come_and_go(box: Namespace, session: int, incarnation: int = 0) -> int:
    with pipe_of(box, session, incarnation) as (_, status):
        return status


def test_four_of_an_address_wait(box: Namespace, tmp_path: Path) -> None:
    """A fifth takes the place of the one that has waited longest; one with a pipe never goes."""
    with (
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1", "--max-sessions-each", "9") as rp,
        pipe_of(box, 99),
    ):
        for i in range(WAITING_MOST):
            assert come_and_go(box, i) == wire_ext.NEW
            rp.expect("0 pipes are left", count=i + 1)
        assert not rp.lines("ended")
        assert come_and_go(box, 0, 1) == wire_ext.RESUMED
        rp.expect("0 pipes are left", count=WAITING_MOST + 1)
        assert come_and_go(box, WAITING_MOST) == wire_ext.NEW
        rp.expect("session 3 of 127.0.0.1 ended: it had no pipe, as others of its address")
        assert come_and_go(box, 1, 1) == wire_ext.UNKNOWN
        for i in (0, 2, 3, 4):
            assert come_and_go(box, i, 2) == wire_ext.RESUMED
        assert len(rp.lines("ended")) == 1


def test_as_long_as_is_told(box: Namespace, tmp_path: Path) -> None:
    with remote_proxy(box, tmp_path, "--listen", "127.0.0.1", "--resume", "1") as rp:
        assert come_and_go(box, 1) == wire_ext.NEW
        rp.expect("ended: it had no pipe for 1 s")
        assert come_and_go(box, 1, 1) == wire_ext.UNKNOWN


def test_not_at_all(box: Namespace, tmp_path: Path) -> None:
    with remote_proxy(box, tmp_path, "--listen", "127.0.0.1", "--resume", "0") as rp:
        with pipe_of(box, 1) as (_, status):
            assert status == wire_ext.NEW
            # The next incarnation of a pipe takes its place: it is never without.
            with pipe_of(box, 1, 1) as (_, status):
                assert status == wire_ext.RESUMED
                assert not rp.lines("ended")
        rp.expect("ended: it has no pipe left, and is not kept without")
        assert come_and_go(box, 1, 2) == wire_ext.UNKNOWN
