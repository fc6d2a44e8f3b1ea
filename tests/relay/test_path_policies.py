# SPDX-License-Identifier: MIT
"""Each policy of paths carries every byte both ways, over the paths that it says.

The two paths are addresses of loopback, alike in all but their names.
"""

import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import why_no_namespace
from tests.relay import miles, payload, records
from tests.relay.ends import Ending, echo, read_exactly, read_to_end, sending, serving, socks
from tests.relay.netns import Namespace
from tests.relay.proxies import LISTEN, local_proxy, remote_proxy
from tests.relay.soak import LONG, PAUSE_S, SOAK_S, Held
from tests.relay.traffic import BOTH, traffic
from tests.relay.two_paths import (
    ALLOW,
    BOTH_PATHS,
    FAR,
    UP,
    bytes_by_path,
    kill,
    kill_by_turns,
    refuse_pipes,
    take_pipes,
)
from tests.relay.waiting import until

WORKERS = 4
BULK = payload.seeded(3_000_000, seed=11)
ALL = Ending("eof", len(BULK), payload.digest(BULK))
# What --path-policy is told at lp and at rp, which knows no names.
POLICIES = [
    ("soonest", "soonest"),
    ("minrtt", "minrtt"),
    ("rr", "rr"),
    ("ecf", "ecf"),
    ("txdelay", "txdelay"),
    ("one:far", "one:1"),
    ("split:80", "split:80"),
    ("copies", "copies"),
    ("dems-b", "dems-b"),
    ("dems-s", "dems-s"),
    ("dems-f", "dems-f"),
]


def download(box: Namespace, port: int) -> Ending:
    with socks(box, "127.0.0.1", port) as sock:
        return read_to_end(sock)


def upload(box: Namespace, port: int) -> None:
    with socks(box, "127.0.0.1", port) as sock:
        sock.sendall(BULK)


def far_share(stats: Path) -> float:
    """Of the bytes of connections, in the last samples; of none it is 0."""
    written = bytes_by_path(stats)
    return written.get(1, 0) / max(1, sum(written.values()))


def relay(
    box: Namespace, tmp: Path, stack: ExitStack, lp: str, rp: str, *both: str
) -> tuple[Any, Any]:
    of_rp = (*ALLOW, "--path-policy", rp, *both, *records.soon(tmp / "rp.jsonl"))
    of_lp = (*BOTH_PATHS, "--path-policy", lp, *both, *records.soon(tmp / "lp.jsonl"))
    remote = stack.enter_context(remote_proxy(box, tmp, *of_rp))
    local = stack.enter_context(local_proxy(box, tmp, *of_lp, ready=UP))
    local.expect(r"3 pipes to 127.0.0.1:6010 over near are up")
    return local, remote


@pytest.mark.parametrize(("lp", "rp"), POLICIES, ids=[lp for lp, _ in POLICIES])
def test_every_policy_delivers(box: Namespace, tmp_path: Path, lp: str, rp: str) -> None:
    with ExitStack() as stack:
        # On a late machine a pipe seems overdue, and what it was to carry goes over another path.
        relay(box, tmp_path, stack, lp, rp, "--thin", "off")
        source = stack.enter_context(serving(box, sending(BULK)))
        sink = stack.enter_context(serving(box, read_to_end))
        for _ in range(2):
            assert download(box, source.port) == ALL
            upload(box, sink.port)
            assert sink.results.get(timeout=20) == ALL
    for side in ("lp", "rp"):
        stats = tmp_path / f"{side}.jsonl"
        assert records.of(stats, "start")[0]["path_policy"] == lp.partition(":")[0]
        share = far_share(stats)
        if lp.startswith("one"):
            assert share == 1, share
        if lp.startswith("split"):
            assert share == pytest.approx(0.2, abs=0.02), share
        if lp == "rr":
            assert share == pytest.approx(0.5, abs=0.25), share


@LONG
@pytest.mark.parametrize("policy", ["copies", "dems-b", "dems-s", "dems-f"])
def test_paths_die_under_a_policy(box: Namespace, tmp_path: Path, policy: str) -> None:
    """Every 200 ms all pipes of a path; every byte both ways is looked at, and in a long run what
    the proxies hold at its end."""
    seconds = SOAK_S or 5.0
    asan = not SOAK_S
    of_lp = (*BOTH_PATHS, "--forward", "7000:127.0.0.1:8000", "--path-policy", policy)
    with (
        remote_proxy(box, tmp_path, *ALLOW, "--path-policy", policy, asan=asan) as rp,
        local_proxy(box, tmp_path, *of_lp, asan=asan, ready=UP) as lp,
        ExitStack() as stack,
    ):
        lp.expect("over near are up")
        both = [Held(proxy, proxy.fd_count(), WORKERS, 5) for proxy in (rp, lp)]
        going = stack.enter_context(traffic(box, 7000, workers=WORKERS, pause_s=PAUSE_S))
        kill_by_turns(box, seconds, each=lambda: [one.look() for one in both])
        assert going.moved > 100_000 * seconds
        assert lp.running() and rp.running()
        assert len(rp.lines("session 1")) and not rp.lines("session 2")
    assert going.done[BOTH] > 2 * seconds
    going.check()
    for one in both:
        one.check()


@dataclass(frozen=True)
class Carried:
    """Of a proxy, over both paths."""

    messages: int
    reinjected: int
    bytes_again: int
    far_share: float


def carried(stats: Path) -> Carried:
    (counters,) = records.of(stats, "counters")
    sent = sum(it["tx_messages"] for it in records.last_of_pipes(stats))
    again, bytes_ = counters["reinjected"], counters["reinjected_bytes"]
    return Carried(sent, again, bytes_, far_share(stats))


@pytest.mark.parametrize("policy", ["copies", "dems-b", "dems-s", "dems-f"])
def test_objects_over_a_near_and_a_far_mile(tmp_path: Path, policy: str) -> None:
    """25 and 75 ms: the near one carries all that is small, and both what is not."""
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    sizes = (100, 60_000, 300_000, 1_000_000)

    def serve(sock: socket.socket) -> None:
        asked = int.from_bytes(read_exactly(sock, 4), "big")
        assert read_exactly(sock, asked) == BULK[:asked]
        sock.sendall(BULK[:asked])

    def option(side: str) -> tuple[str, ...]:
        return ("--path-policy", policy, *records.soon(tmp_path / f"{side}.jsonl"))

    with (
        miles.miles(tmp_path / "links", 25.0, 75.0) as at,
        miles.proxies(at, tmp_path, *miles.PATHS, *option("lp"), rp_options=option("rp")),
        serving(at.far, serve, (miles.RP, miles.PORT)),
    ):
        for size in (*sizes, *sizes):
            with socks(at.near, miles.RP, miles.PORT) as sock:
                sock.sendall(size.to_bytes(4, "big") + BULK[:size])
                assert read_exactly(sock, size) == BULK[:size]
                assert not sock.recv(1)
    for side in ("lp", "rp"):
        it = carried(tmp_path / f"{side}.jsonl")
        assert 0.1 < it.far_share < 0.7, it
        if policy == "dems-b":
            assert not it.reinjected and not it.bytes_again, it
        if policy == "dems-s":
            assert it.reinjected and it.bytes_again < 2 * 3 * 150_000, it
        if policy == "copies":
            assert it.reinjected > it.messages / 4, it


def test_dems_is_refused_over_three_paths(box: Namespace, tmp_path: Path) -> None:
    """rp hears of the third one only as lp has begun."""
    third = ("--path", "third,src=127.0.0.4,pipes=1")
    with (
        remote_proxy(box, tmp_path, *ALLOW, "--path-policy", "dems-f") as rp,
        local_proxy(box, tmp_path, *BOTH_PATHS, *third, ready=r"up|GOODBYE"),
    ):
        rp.expect(r"--path-policy dems-f is for 2 paths, and LP has more of them: session ended")


def test_the_other_path_stands_in_for_the_one(box: Namespace, tmp_path: Path) -> None:
    """Bytes that wait for the path's pipes when these go take the other."""
    with ExitStack() as stack:
        local, _ = relay(box, tmp_path, stack, "one:far", "one:1")
        server = stack.enter_context(serving(box, echo))
        sock = stack.enter_context(socks(box, "127.0.0.1", server.port))
        sock.sendall(BULK[:100_000])
        assert read_exactly(sock, 100_000) == BULK[:100_000]
        until("a sample", lambda: far_share(tmp_path / "lp.jsonl") == 1)
        refuse_pipes(box, FAR)
        kill(box, FAR)
        for _ in range(3):
            sock.sendall(BULK[:100_000])
            assert read_exactly(sock, 100_000) == BULK[:100_000]
        until("a sample", lambda: far_share(tmp_path / "lp.jsonl") < 0.5)
        take_pipes(box)
        local.expect(UP, count=2)


def test_a_policy_of_several_paths_is_nothing_over_one(box: Namespace, tmp_path: Path) -> None:
    """rp cannot know how many its local proxies have."""
    with ExitStack() as stack:
        stack.enter_context(remote_proxy(box, tmp_path, *LISTEN, "--path-policy", "ecf"))
        stack.enter_context(local_proxy(box, tmp_path))
        source = stack.enter_context(serving(box, sending(BULK)))
        assert download(box, source.port) == ALL
