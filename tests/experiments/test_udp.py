# SPDX-License-Identifier: MIT
"""Datagrams beside a bulk: what is lost, late, wrong or refused is told as that."""

import itertools
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from experiments import sweep
from experiments.catalogue import find
from experiments.catalogue.udp import ENTRIES
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.plots import cells
from experiments.prepare import wanted_by
from experiments.report import rows
from experiments.report.data import Results
from experiments.report.runs import Run
from experiments.workloads import association, talk, udp
from experiments.workloads.actors import Scene
from experiments.workloads.association import Association, NotRelayed, wrapped
from experiments.workloads.datagrams import (
    HEAD,
    Packet,
    query,
    resolved,
    stamped,
)
from experiments.workloads.exchange import CutShort, read_exactly
from experiments.workloads.pattern import WrongByte
from experiments.workloads.talk import Flow, Queries
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs

__all__ = ["labs"]

HERE = "127.0.0.1"
Answer = Callable[[bytes], bytes | None]


@contextmanager
def answering(answer: Answer) -> Iterator[int]:
    """A server's port; None is no answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HERE, 0))
        over = threading.Event()

        def serve() -> None:
            while True:
                data, peer = sock.recvfrom(65536)
                if over.is_set():
                    return
                said = answer(data)
                if said is not None:
                    sock.sendto(said, peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            over.set()
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", sock.getsockname())
            thread.join(timeout=10)
            assert not thread.is_alive()


def but(lost: Callable[[int], bool], answer: Answer) -> Answer:
    """Some are lost, by how many came before."""
    count = itertools.count()
    return lambda data: None if lost(next(count)) else answer(data)


def scene() -> Scene:
    return Scene(address=HERE, cc="cubic", seed=7, seconds=10.0, began=time.monotonic())


def test_a_packet_is_what_was_sent() -> None:
    packet = Packet(3, 5)
    data = packet.packed(11, 100)
    assert len(data) == 100
    assert Packet.parsed(data, 11, 100) == packet
    back = Packet.parsed(stamped(data), 11, 100)
    assert (back.number, back.sent_ns) == (3, 5)
    assert back.came_ns > 0
    with pytest.raises(WrongByte, match="of 99 bytes, not 100"):
        Packet.parsed(data[:-1], 11, 100)
    with pytest.raises(WrongByte, match="byte 300 is"):
        Packet.parsed(data, 12, 100)
    with pytest.raises(WrongByte):
        Packet.parsed(HEAD.pack(4, 5, 0) + data[HEAD.size :], 11, 100)


def test_a_flow_counts_what_comes_back() -> None:
    """Every tenth is lost; of the others each way adds up to the round trip."""
    flow = Flow(port=0, rate=200.0, seconds=0.25)
    with answering(but(lambda n: n % 10 == 9, stamped)) as port, pytest.MonkeyPatch.context() as at:
        at.setattr(talk, "DRAIN_S", 2.0)
        found = Flow(port=port, rate=flow.rate, seconds=flow.seconds).run(scene())
    assert found["sent"] == 50
    assert len(found["took_s"]) == 45
    for up, down, took in zip(found["up_s"], found["down_s"], found["took_s"], strict=True):
        assert up > 0 < down
        assert up + down == pytest.approx(took, abs=1e-6)


def test_a_packet_that_comes_twice_counts_once() -> None:
    with answering(stamped) as port, Association((HERE, port), entry="none", seconds=5) as sock:
        flow = Flow(port=port, seconds=0.1)
        for _ in range(2):
            sock.send(Packet(0, 1).packed(11, 100))
        sock.send(Packet(1, 1).packed(11, 100))
        assert set(flow._receive(sock, 11, 2)) == {0, 1}


def test_a_wrong_packet_and_a_closed_port_fail() -> None:
    with answering(lambda data: stamped(data)[:-1] + b"?") as port:
        with pytest.raises(WrongByte):
            Flow(port=port, seconds=0.1).run(scene())
    with pytest.raises(ConnectionRefusedError):
        Flow(port=port, seconds=0.1).run(scene())


def test_a_query_that_is_lost_is_asked_again() -> None:
    with answering(but(lambda n: n == 0, resolved)) as port:
        found = Queries(port=port, every_s=0.01, seconds=0.1).run(scene())
    assert found["again"] >= 1
    assert found["seconds"][0] >= talk.AGAIN_S, "the time of a query is from the first time on"


def test_a_query_without_an_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is never answered; without any answer at all there is nothing to measure."""
    monkeypatch.setattr(talk, "AGAIN_S", 0.3)
    with answering(lambda data: resolved(data) if data[:2] != b"\0\1" else None) as port:
        found = Queries(port=port, every_s=0.01, seconds=1.4).run(scene())
    assert found["unanswered"] >= 1
    assert found["again"] >= 4
    assert found["seconds"][1] >= 1.5
    assert udp.of_queries(found)["dns_unanswered"] > 0
    with answering(lambda data: None) as port:
        with pytest.raises(CutShort, match="none of 1 queries was answered in 5 tries"):
            Queries(port=port, every_s=2.0, seconds=0.1).run(scene())
        monkeypatch.setattr(talk, "DRAIN_S", 0.1)
        with pytest.raises(CutShort, match="none of 6 packets came back"):
            Flow(port=port, seconds=0.1).run(scene())


def test_a_wrong_answer_fails() -> None:
    with answering(lambda data: resolved(data)[:-1] + b"\7") as port:
        with pytest.raises(WrongByte, match="the answer to query 0 is 0000"):
            Queries(port=port, seconds=0.1).run(scene())


def test_a_query_is_one_that_a_name_server_reads() -> None:
    """RFC 1035, read by hand: a name of two labels, an address of four bytes."""
    asked, told = query(258), resolved(query(258))
    assert asked[:2] == told[:2] == b"\1\2"
    assert struct.unpack("!HHHHH", asked[2:12]) == (0x0100, 1, 0, 0, 0)
    assert struct.unpack("!HHHHH", told[2:12]) == (0x8180, 1, 1, 0, 0)
    assert asked[12:] == b"\7example\3com\0\0\1\0\1" == told[12 : len(asked)]
    assert told[len(asked) :] == b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1"


@contextmanager
def relaying(monkeypatch: pytest.MonkeyPatch, code: int, source: str = "") -> Iterator[list[bytes]]:
    """A SOCKS5 server that relays one association, and hears; `source`: who it says it was."""
    heard: list[bytes] = []
    listener = socket.create_server((HERE, 0))
    relay = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    relay.bind((HERE, 0))
    monkeypatch.setattr(association, "SOCKS", listener.getsockname())

    def serve() -> None:
        control, _ = listener.accept()
        with control:
            assert read_exactly(control, 3) == b"\5\1\0"
            control.sendall(b"\5\0")
            assert read_exactly(control, 10) == b"\5\3\0\1" + bytes(6)
            control.sendall(bytes((5, code)) + wrapped(relay.getsockname())[2:])
            if not code:
                data, peer = relay.recvfrom(65536)
                heard.append(data)
                head = wrapped((source, 9)) if source else data[:10]
                relay.sendto(head + data[10:][::-1], peer)
            control.recv(1)  # until the client has had enough

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener, relay:
        yield heard
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_lp_is_told_where_a_datagram_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    with relaying(monkeypatch, 0) as heard:
        with Association(("192.0.2.7", 258), entry="socks5", seconds=5) as sock:
            sock.send(b"abc")
            assert sock.receive(5) == b"cba"
    assert heard == [b"\0\0\0\1\xc0\0\2\7\1\2abc"]


def test_a_forward_is_a_port_of_the_loopback() -> None:
    """It takes what the server's port of the same number would, as it is."""
    with answering(lambda data: data[::-1]) as port:
        with Association(("192.0.2.7", port), entry="forward", seconds=5) as sock:
            sock.send(b"abc")
            assert sock.receive(5) == b"cba"
    assert association.forwards("192.0.2.7", (53,)) == ["--forward=udp:53:192.0.2.7:53"]


def test_what_another_host_sent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with relaying(monkeypatch, 0, source="192.0.2.8"):
        with Association(("192.0.2.7", 258), entry="socks5", seconds=5) as sock:
            sock.send(b"abc")
            with pytest.raises(NotRelayed, match="from elsewhere: 00000001c0000208"):
                sock.receive(5)


def test_a_proxy_that_carries_no_datagrams(monkeypatch: pytest.MonkeyPatch) -> None:
    with relaying(monkeypatch, 7), pytest.raises(NotRelayed, match="refused UDP ASSOCIATE: 0507"):
        Association(("192.0.2.7", 258), entry="socks5", seconds=5)


def flow_of(took_s: list[float], sent: int) -> dict[str, Any]:
    half = [each / 2 for each in took_s]
    return {"sent": sent, "took_s": took_s, "up_s": half, "down_s": half}


def test_late_audio_is_gone_as_lost_audio_is() -> None:
    """Of ten packets one is lost, and two are more than 100 ms behind the fastest."""
    audio = flow_of([0.05] * 6 + [0.149, 0.151, 0.4], sent=10)
    found = udp.of_flows(flow_of([0.1, 0.2, 0.3], sent=4), audio)
    assert found["audio_loss"] == pytest.approx(0.1)
    assert found["audio_late"] == pytest.approx(0.3)
    assert found["game_loss"] == 0.25
    assert found["game_p50_ms"] == pytest.approx(200)
    assert found["game_up_p50_ms"] == found["game_down_p50_ms"] == pytest.approx(100)
    assert found["game_p99_ms"] == pytest.approx(298)


@pytest.mark.parametrize(
    ("added", "lost", "factor", "said"), [(9.0, 0.0, 0.3, "yes"), (40.0, 0.02, 1.4, "no")]
)
def test_bounds_that_hold_and_that_do_not(
    added: float, lost: float, factor: float, said: str
) -> None:
    found = rows.rows(results_of(added, lost, factor))
    assert {row.verdict for row in found} == {said}, [(it.claim.says, it.ours) for it in found]
    assert len(found) == 25


def results_of(added: float, lost: float, factor: float) -> Results:
    """Of the whole sweep: how pipes differ from direct."""
    experiment = find("udp")
    runs = []
    for number, params in enumerate(sweep.configurations(experiment, {})):
        pipes, idle = params["way"] == "pipes", params["load"] == "alone"
        for seed in range(10):
            direct_ms = random.Random(f"{seed}").uniform(74, 75) + (0 if idle else 20)
            measures = {
                "game_p99_ms": 76 + seed / 10 + (0 if idle else added if pipes else 25),
                "audio_loss": 0.0 if idle or not pipes else lost,
                "dns_p50_ms": direct_ms * (factor if pipes else 1),
                "http3_p50_ms": 3 * direct_ms * (factor if pipes else 1),
            }
            runs.append(Run(f"{number}-{seed}", params, seed, seed, "ok", measures))
    return Results(Path("nowhere"), {"format": 1}, tuple(runs), 0, experiment, True)


def test_a_figure_has_both_entries_beside_direct() -> None:
    """In one panel of each preset; without pipes there is no entry that would need its own."""
    results = results_of(9.0, 0.0, 0.3)
    figure = next(it for it in results.experiment.figures if it.name == "http3")
    found = {
        panel.label: {line.label for line in panel.lines}
        for panel in cells.scene(results, figure).panels
    }
    both = {"direct", "8 pipes, entry socks5", "8 pipes, entry forward"}
    assert found.pop("lte") == both
    assert set(found) == {"wifi", "dsl", "lossy"}
    assert all(labels == both - {"8 pipes, entry forward"} for labels in found.values())


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


@pytest.mark.parametrize("entry", ENTRIES)
def test_all_datagrams_go_through_the_pipes(kept: Labs, tmp_path: Path, entry: str) -> None:
    """Whatever lp's way in. What ends a QUIC connection, which are an acknowledgement or two and
    CONNECTION_CLOSE, may come when its association is gone."""
    experiment = find("udp")
    params = configuration(experiment.parameters, load="alone", seconds=0.5, entry=entry)
    more = wanted_by(experiment, params, tmp_path)
    with live(kept, tmp_path / "run", params, more=more) as made:
        measures = experiment.measure(made)
        assert made.pair is not None
        told = made.pair
    sent = 30 + 25 + measures["queries"] + measures["asked_again"] + measures["http3_sent"]
    (counters,) = [it for it in told.statistics("lp") if it["type"] == "counters"]
    dropped = counters["datagrams_stale"]  # a machine that is busy may make them wait
    assert 0 <= sent - counters["datagrams_sent"] - dropped <= 3 * measures["http3_objects"]
    assert measures["http3_sent"] > 3 * measures["http3_objects"] > 0
    assert counters["datagrams_received"] > 0
    assert min(measures["game_p50_ms"], measures["dns_p50_ms"]) >= 10, "faster than the path"
    assert measures["http3_p50_ms"] >= measures["http3_connect_ms"] + 10, "faster than the path"
    assert "bulk_mbps" not in measures


def test_direct_datagrams_beside_an_upload(kept: Labs, tmp_path: Path) -> None:
    """They need no proxies, and the bulk is there before them."""
    params = configuration(find("udp").parameters, way="direct", load="upload", seconds=0.5)
    with live(kept, tmp_path / "run", params) as made:
        measures = find("udp").measure(made)
    assert measures["bulk_mbps"] > 0
    assert measures["game_p50_ms"] >= 10, "faster than the path"
    assert measures["http3_p50_ms"] >= 20, "faster than the path"


def test_the_baseline_carries_no_datagrams(kept: Labs, tmp_path: Path) -> None:
    params = configuration(find("udp").parameters, extend="never", load="alone", seconds=0.5)
    with live(kept, tmp_path / "run", params) as made:
        with pytest.raises(RunFailed, match="lp refused UDP ASSOCIATE: 0507"):
            find("udp").measure(made)
