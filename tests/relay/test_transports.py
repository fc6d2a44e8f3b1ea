# SPDX-License-Identifier: MIT
"""Pipes that are not all TCP: MPTCP end to end, and what is refused. SCTP is tried in the guest."""

import threading
from pathlib import Path

import pytest

from tests.relay import payload, records
from tests.relay.ends import Ending, echo, read_exactly, read_to_end, sending, serving, socks
from tests.relay.kinds import SCTP_MISSING, mptcp
from tests.relay.netns import Namespace
from tests.relay.programs import binary, finish
from tests.relay.proxies import LP_READY, local_proxy, pair, remote_proxy
from tests.relay.waiting import equals

BULK = payload.seeded(3_000_000, seed=12)
WHOLE = Ending("eof", len(BULK), payload.digest(BULK))
NO_STAMPS = "pipes of mptcp do not tell enough for --aggregate delay: it is off"


@pytest.fixture
def wide(box: Namespace) -> Namespace:
    """A namespace in which MPTCP is on, whatever it is on the machine."""
    box.run("sysctl", "-q", "net.mptcp.enabled=1")
    return box


def exchange(box: Namespace, tmp_path: Path, rp: list[str], lp: list[str]) -> tuple[str, str]:
    """Bytes both ways at once over four pipes, verified; what rp and lp logged."""
    ends: list[Ending] = []

    def download(port: int) -> None:
        with socks(box, "127.0.0.1", port) as sock:
            ends.append(read_to_end(sock))

    with (
        serving(box, sending(BULK)) as source,
        serving(box, read_to_end) as sink,
        pair(
            box,
            tmp_path,
            rp=[*rp, "--stats", str(tmp_path / "rp.jsonl")],
            lp=[*lp, "--stats", str(tmp_path / "lp.jsonl")],
        ) as both,
    ):
        threads = [threading.Thread(target=download, args=(source.port,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            with socks(box, "127.0.0.1", sink.port) as sock:
                sock.sendall(BULK)
        for thread in threads:
            thread.join(timeout=40)
        assert ends == [WHOLE] * 3
        assert [sink.results.get(timeout=20) for _ in range(2)] == [WHOLE] * 2
    return both.rp.log, both.lp.log


def transports(tmp_path: Path, side: str) -> list[str]:
    return [pipe["transport"] for pipe in records.last_of_pipes(tmp_path / f"{side}.jsonl")]


@mptcp
@pytest.mark.parametrize(
    "more", [[], ["--binding", "early"], ["--aggregate", "dswa"]], ids=" ".join
)
def test_mptcp_pipes(wide: Namespace, tmp_path: Path, more: list[str]) -> None:
    rp, lp = exchange(wide, tmp_path, ["--pipe", "mptcp", *more], ["--pipe", "mptcp", *more])
    assert "rp: listening on 0.0.0.0:6000 for 4 pipes over mptcp or tcp\n" in rp
    for side, log in (("rp", rp), ("lp", lp)):
        assert transports(tmp_path, side) == ["mptcp"] * 4
        assert records.of(tmp_path / f"{side}.jsonl", "start")[0]["transport"] == "mptcp"
        newest = records.last_of_pipes(tmp_path / f"{side}.jsonl")
        assert [pipe["subflows"] for pipe in newest] == [1] * 4
        assert log.count(NO_STAMPS) == (0 if more else 1), log


@mptcp
def test_a_mixed_set(wide: Namespace, tmp_path: Path) -> None:
    set_of = "tcp:1,mptcp:3"
    _, lp = exchange(wide, tmp_path, ["--pipe", set_of], ["--pipe", set_of])
    assert transports(tmp_path, "lp") == ["tcp", "mptcp", "mptcp", "mptcp"]
    assert sorted(transports(tmp_path, "rp")) == ["mptcp", "mptcp", "mptcp", "tcp"]
    assert records.of(tmp_path / "lp.jsonl", "start")[0]["transport"] == set_of
    assert "plain TCP" not in lp


@mptcp
def test_tcp_pipes_to_who_takes_mptcp(wide: Namespace, tmp_path: Path) -> None:
    rp, _ = exchange(wide, tmp_path, ["--pipe", "mptcp"], [])
    assert transports(tmp_path, "rp") == ["tcp"] * 4
    assert NO_STAMPS not in rp


@mptcp
def test_mptcp_pipes_to_who_takes_tcp(wide: Namespace, tmp_path: Path) -> None:
    """It works, and says that it is not what was asked for."""
    _, lp = exchange(wide, tmp_path, [], ["--pipe", "mptcp"])
    assert lp.count("lp: mptcp: 4 of 4 pipes to 127.0.0.1:6000 go on as plain TCP; ") == 1
    newest = records.last_of_pipes(tmp_path / "lp.jsonl")
    assert [pipe["subflows"] for pipe in newest] == [0] * 4


@mptcp
def test_either_end_killed(wide: Namespace, tmp_path: Path) -> None:
    """As over TCP: the survivor resets what was open, and what comes next works."""
    words = ["--pipe", "mptcp"]
    with (
        serving(wide, echo) as mirror,
        local_proxy(wide, tmp_path, *words, ready=None) as lp,
    ):
        for turn in range(2):
            with remote_proxy(wide, tmp_path, *words, name=f"rp{turn}") as rp:
                lp.expect(LP_READY, 20, count=turn + 1)
                with socks(wide, "127.0.0.1", mirror.port) as sock:
                    sock.sendall(b"alive")
                    assert read_exactly(sock, 5) == b"alive"
                    rp.kill()
                    assert read_to_end(sock).how == "reset"
        with remote_proxy(wide, tmp_path, *words, name="last") as rp:
            lp.expect(LP_READY, 20, count=3)
            idle = rp.fd_count() - 4
            with socks(wide, "127.0.0.1", mirror.port) as sock:
                sock.sendall(b"alive")
                assert read_exactly(sock, 5) == b"alive"
                lp.kill()
            rp.expect(r"session 1 of 127\.0\.0\.1 ended")
            equals("rp's descriptors", rp.fd_count, idle)


@mptcp
@pytest.mark.parametrize("side", ["rp", "lp"])
def test_mptcp_that_is_off(box: Namespace, side: str) -> None:
    box.run("sysctl", "-q", "net.mptcp.enabled=0")
    words = ["--pipe", "mptcp", *(["127.0.0.1"] if side == "lp" else []), "4"]
    code, out, err = finish([binary(side), *words], box, 10)
    assert (code, out) == (2, "")
    assert err == f"{side}: mptcp: MPTCP is off here (sysctl net.mptcp.enabled)\n"


@pytest.mark.skipif(SCTP_MISSING is None, reason="this kernel has SCTP")
@pytest.mark.parametrize("list_", ["sctp", "tcp:2,sctp:2"])
@pytest.mark.parametrize("side", ["rp", "lp"])
def test_sctp_that_is_missing(box: Namespace, side: str, list_: str) -> None:
    words = ["--pipe", list_, *(["127.0.0.1"] if side == "lp" else []), "4"]
    code, out, err = finish([binary(side), *words], box, 10)
    assert (code, out) == (2, "")
    assert err == f"{side}: sctp: this kernel has no SCTP (Protocol not supported)\n"
