# SPDX-License-Identifier: MIT
"""Connection ids: where they begin, and what ids tell that belong to another session."""

import socket
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.relay import records, wire
from tests.relay.delays import FAR, delayed_pipes
from tests.relay.ends import (
    RST_ON_CLOSE,
    echo,
    ending_of,
    read_exactly,
    read_to_end,
    reading,
    serving,
)
from tests.relay.netns import Namespace
from tests.relay.proxies import LP_READY, local_proxy, remote_proxy
from tests.relay.traffic import traffic
from tests.relay.waiting import until
from tests.relay.wire import raw_lp, raw_rp

FORWARD = ("--forward", "7000:127.0.0.1:8000")


def first_id(box: Namespace, tmp_path: Path, *options: str, name: str = "lp") -> int:
    with (
        raw_rp(box) as rp,
        local_proxy(box, tmp_path, *FORWARD, *options, pipes=1, name=name, ready=None) as lp,
    ):
        (pipe,) = rp.accept(1)
        lp.expect(LP_READY)
        with pipe.sock, box.connect(("127.0.0.1", 7000)):
            message = pipe.receive()
            assert message is not None and message.kind == "syn", message
            return message.conn


def test_ids_begin_anywhere(box: Namespace, tmp_path: Path) -> None:
    found = {first_id(box, tmp_path, name=f"lp-{n}") for n in range(4)}
    assert len(found) > 1, found
    assert all(1 <= conn <= 32767 for conn in found)


@pytest.mark.parametrize(("seed", "conn"), [(0, 1), (6, 7), (32767, 1), (32766, 32767)])
def test_a_seed_says_where_ids_begin(box: Namespace, tmp_path: Path, seed: int, conn: int) -> None:
    assert first_id(box, tmp_path, "--seed", str(seed)) == conn


@pytest.mark.slow
def test_who_would_wait_long_for_an_id_is_refused(box: Namespace, tmp_path: Path) -> None:
    """More connections than there are ids, in less time than an id rests."""
    with (
        raw_rp(box) as rp,
        local_proxy(box, tmp_path, *FORWARD, pipes=1, ready=None, asan=False) as lp,
    ):
        (pipe,) = rp.accept(1)
        lp.expect(LP_READY)
        with pipe.sock, reading(pipe.sock, 60.0):
            with box.entered(), suppress(ConnectionResetError):
                began = time.monotonic()
                for _ in range(32767):
                    with socket.create_connection(("127.0.0.1", 7000), 10) as sock:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
            took = time.monotonic() - began
            if took > 27:
                pytest.skip(f"this machine took {took:.0f} s for as many as there are ids")
            lp.expect(r"all 32767 connection ids are in use or rest .* refused for \d+ s")
            assert ending_of(box, 7000, 1.0).how == "reset"
            until("an id to be free", lambda: answered(box), 35)


def answered(box: Namespace) -> bool:
    """Whether lp takes a connection: it is not reset at once."""
    return ending_of(box, 7000, 0.3).how == "timeout"


DELAYS_S = (0.0, 0.3, 0.6, 1.0)  # of the pipes, one way
AGAIN = 5  # uses of an id, in the mean


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["one thread", "two workers"])
def test_ids_are_used_again_over_pipes_of_many_delays(
    box: Namespace, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    """Messages of an id's last use are a second late and its next one is open: each application
    has its own bytes, each connection reaches its server once. Messages go over all pipes."""
    stats = tmp_path / "rp.jsonl"
    turns = ("--pipe-policy", "rr")
    with (
        delayed_pipes(box, DELAYS_S),
        remote_proxy(box, tmp_path, "--listen", FAR, *records.soon(stats), *turns, *workers),
        local_proxy(box, tmp_path, *FORWARD, *turns, "--extend", "always"),
        traffic(box, 7000, workers=32, most=20_000) as going,
    ):
        until("400 connections", lambda: going.wrong or going.done.total() >= 400, 80)
    uses = Counter(record["id"] for record in records.of(stats, "conn"))
    assert uses.total() >= 400
    assert uses.total() >= AGAIN * len(uses), uses
    assert max(uses.values()) >= 2 * AGAIN, uses


def test_a_message_for_another_session_ends_it(box: Namespace, tmp_path: Path) -> None:
    """lp never opened that connection, so its own bytes may be with somebody else, too."""
    with (
        raw_rp(box) as rp,
        local_proxy(box, tmp_path, *FORWARD, "--seed", "0", pipes=2, ready=None) as lp,
    ):
        pipes = rp.accept(2)
        lp.expect(LP_READY)
        with pipes[0].sock, pipes[1].sock, box.connect(("127.0.0.1", 7000)) as app:
            app.sendall(b"request")
            pipes[0].send(wire.data(1, 0, b"answer"))
            assert read_exactly(app, 6) == b"answer"
            pipes[1].send(wire.data(1, 1, b"!"), wire.data(2, 0, b"a stranger's"))
            lp.expect(r"pipe 1, byte 9, connection id: 2 was never opened here: session ended")
            assert read_to_end(app, 5).how == "reset"
            assert all(pipe.ended(5) for pipe in pipes)


def test_data_whose_syn_does_not_come_are_told_of(box: Namespace, tmp_path: Path) -> None:
    """Once in a while, however many there are; and other connections go on."""
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, pipes=1) as rp,
        raw_lp(box, 1) as (pipe,),
    ):
        pipe.send(*(wire.data(conn, 1, b"whose?") for conn in range(100, 300)))
        rp.expect(r"messages of connection \d+ came, but no SYN for 5 s", 12)
        pipe.send(wire.syn(1, "127.0.0.1", server.port), wire.data(1, 1, b"mine"))
        message = pipe.receive()
        assert message is not None and message.body == b"mine"
        assert len(rp.lines("no SYN")) == 1
