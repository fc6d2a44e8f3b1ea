# SPDX-License-Identifier: MIT
"""What the proxies tell of themselves: --stats and SIGUSR1."""

import re
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

from tests.relay import payload, records, wire
from tests.relay.ends import echo, read_exactly, read_to_end, sending, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import binary, finish
from tests.relay.proxies import extended_pair, pair, remote_proxy
from tests.relay.waiting import until
from tests.relay.wire import raw_lp

NUMBER = (int, float)
CLOSED = 9  # a port that nobody listens on
EMPTY_RECORDS = 100  # in a second, of connections that carried nothing
ONE_PIPE_ACK = 35  # bytes of an ACK that speaks of one pipe
START = {
    "type": str, "program": str, "version": str, "time": NUMBER, "pipes": int,
    "transport": str, "binding": str, "pipe_policy": str, "path_policy": str,
    "conn_policy": str, "reinject": str,
}  # fmt: skip
SESSION = {"type": str, "event": str, "time": NUMBER, "session": int, "peer": str}
PIPE = {
    "type": str, "time": NUMBER, "session": int, "pipe": int, "state": str, "transport": str,
    "cc": str,
    "rtt_ms": NUMBER, "rttmin_ms": NUMBER, "cwnd": int, "mss": int, "unsent": int,
    "in_flight": int, "allowance": int, "tx_bytes": int, "rx_bytes": int, "tx_messages": int,
    "rx_messages": int, "tx_acks": int, "tx_ack_bytes": int, "tx_copies": int,
    "retransmits": int, "segments": int,
}  # fmt: skip
CONN = {
    "type": str, "session": int, "id": int, "dst": str, "opened": NUMBER, "connected": NUMBER,
    "closed": NUMBER, "tx_bytes": int, "rx_bytes": int, "tx_messages": int, "rx_messages": int,
    "reorder_ms": dict, "reorder_max_messages": int, "reorder_max_bytes": int, "end": str,
}  # fmt: skip


def conforms(record: dict[str, Any], schema: dict[str, Any]) -> None:
    for field, kind in schema.items():
        assert field in record, f"no {field} in {record}"
        assert isinstance(record[field], kind), f"{field} of {record}"
        assert not isinstance(record[field], bool), f"{field} of {record}"


def check_schema(path: Path, program: str) -> None:
    everything = records.read(path)
    assert everything[0]["type"] == "start"
    conforms(everything[0], START)
    assert everything[0]["program"] == program
    schemas = {"session": SESSION, "pipe": PIPE, "conn": CONN}
    for record in everything[1:]:
        if record["type"] in schemas:
            conforms(record, schemas[record["type"]])
    assert {"session", "pipe", "conn"} <= {r["type"] for r in everything}


def test_records_and_their_sums(box: Namespace, tmp_path: Path) -> None:
    """Bytes at the ends, in the connections' records and in the pipes' samples agree."""
    up, down = payload.seeded(1_234_567), payload.seeded(2_345_678)
    paths = {side: tmp_path / f"{side}.jsonl" for side in ("rp", "lp")}
    before = time.time()
    with (
        serving(box, read_to_end) as sink,
        serving(box, sending(down)) as source,
        pair(
            box,
            tmp_path,
            rp=["--stats", str(paths["rp"])],
            lp=["--stats", str(paths["lp"]), "--stats-interval", "0.2"],
        ),
    ):
        with socks(box, "127.0.0.1", sink.port) as sock:
            sock.sendall(up)
        assert sink.results.get(timeout=20).size == len(up)
        with socks(box, "127.0.0.1", source.port) as sock:
            assert read_to_end(sock).size == len(down)
        for path in paths.values():
            until(f"two connections in {path.name}", lambda p=path: len(records.of(p, "conn")) == 2)
        samples = len(records.of(paths["lp"], "pipe"))
        until("another sample of lp's pipes",
              lambda: len(records.of(paths["lp"], "pipe")) > samples)  # fmt: skip

    for side, path in paths.items():
        check_schema(path, side)
        sessions = records.of(path, "session")
        assert [s["event"] for s in sessions] == ["begin", "end"]
        assert sessions[1]["reason"]
        assert sessions[0]["peer"].startswith("127.0.0.1")
        for conn in records.of(path, "conn"):
            assert before - 1 < conn["opened"] <= conn["connected"] <= conn["closed"]
            assert set(conn["reorder_ms"]) == {"p50", "p75", "p99", "max"}
            assert 1 <= conn["id"] <= 32767

    conns = {
        (side, conn["dst"]): conn for side in paths for conn in records.of(paths[side], "conn")
    }
    to_sink, to_source = f"127.0.0.1:{sink.port}", f"127.0.0.1:{source.port}"
    assert conns["lp", to_sink]["tx_bytes"] == len(up) == conns["rp", to_sink]["rx_bytes"]
    assert conns["rp", to_source]["tx_bytes"] == len(down) == conns["lp", to_source]["rx_bytes"]
    for dst in (to_sink, to_source):
        assert conns["lp", dst]["tx_messages"] == conns["rp", dst]["rx_messages"]

    lp, rp = (records.last_of_pipes(paths[side]) for side in ("lp", "rp"))
    assert [p["pipe"] for p in lp] == [p["pipe"] for p in rp] == [0, 1, 2, 3]
    for side, pipes in (("lp", lp), ("rp", rp)):
        payload_bytes = sum(c["tx_bytes"] for c in records.of(paths[side], "conn"))
        framed = sum(p["tx_bytes"] for p in pipes)
        messages = sum(p["tx_messages"] for p in pipes)
        assert payload_bytes < framed <= payload_bytes + 14 * messages
        assert messages >= sum(c["tx_messages"] for c in records.of(paths[side], "conn"))
    assert sum(p["tx_bytes"] for p in lp) == sum(p["rx_bytes"] for p in rp)
    assert sum(p["rx_bytes"] for p in lp) == sum(p["tx_bytes"] for p in rp)
    assert sum(p["tx_messages"] for p in rp) == sum(p["rx_messages"] for p in lp)


def test_acks_are_counted(box: Namespace, tmp_path: Path) -> None:
    """Of the extension's: with one pipe each has 35 bytes. The baseline has none. A late lp has one
    for all that its socket held, 6 MB at most."""
    down = payload.seeded(20_000_000)
    for extend in ("always", "never"):
        folder = tmp_path / extend
        folder.mkdir()
        stats = ["--stats-interval", "0.1", "--stats"]
        with (
            serving(box, sending(down)) as source,
            pair(
                box,
                folder,
                pipes=1,
                rp=["--listen", "127.0.0.1", *stats, str(folder / "rp.jsonl")],
                lp=["--extend", extend, *stats, str(folder / "lp.jsonl")],
            ),
            socks(box, "127.0.0.1", source.port) as sock,
        ):
            assert read_to_end(sock).size == len(down)
        acks = {}
        for side in ("rp", "lp"):
            (pipe,) = records.last_of_pipes(folder / f"{side}.jsonl")
            acks[side] = pipe["tx_acks"]
            assert pipe["tx_ack_bytes"] == acks[side] * ONE_PIPE_ACK
            assert acks[side] <= pipe["tx_messages"]
        if extend == "always":
            assert 3 <= acks["lp"] < 100, "one for each MiB at least, or each 100 ms"
        else:
            assert acks == {"rp": 0, "lp": 0}


def test_what_stands_in_queues_and_who_waits(box: Namespace, tmp_path: Path) -> None:
    """Each connection counts once. One application takes nothing, one says nothing."""
    paths = {side: tmp_path / f"{side}.jsonl" for side in ("rp", "lp")}
    down, stop = payload.seeded(20_000_000), threading.Event()

    def silent(sock: socket.socket) -> None:
        stop.wait(30)

    with (
        serving(box, silent) as nothing,
        serving(box, sending(down)) as source,
        extended_pair(box, tmp_path, rp=records.soon(paths["rp"]), lp=records.soon(paths["lp"])),
        socks(box, "127.0.0.1", nothing.port),
        socks(box, "127.0.0.1", source.port),
    ):

        def newest(side: str) -> dict[str, Any]:
            return (records.of(paths[side], "queues") or [{}])[-1]

        until("its bytes to wait at lp", lambda: newest("lp").get("taking") == 1)
        until("rp to send no more of it", lambda: newest("rp").get("credit") == 1)
        assert newest("lp")["queued"] > 0
        for side in paths:
            assert newest(side)["connections"] == 2
            assert newest(side)["idle"] == 1
        stop.set()
    kinds = ("flows", "connecting", "missing", "taking", "ending", "credit", "sending", "idle")
    for path in paths.values():
        for told in records.of(path, "queues"):
            assert sum(told[kind] for kind in kinds) == told["connections"]
            assert told["sender"] in ("data", "pipes", "limit", "order", "acks")


def test_connections_that_carried_nothing_do_not_fill_a_disk(
    box: Namespace, tmp_path: Path
) -> None:
    """So many have a record, the others are counted; who carried a byte has its own in any case."""
    path, many = tmp_path / "rp.jsonl", 2000
    began = time.time()
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, *records.soon(path), pipes=1),
        raw_lp(box, 1) as (pipe,),
    ):
        pipe.send(*(wire.syn(conn, "127.0.0.1", CLOSED) for conn in range(1, many)))
        pipe.send(
            wire.syn(many, "127.0.0.1", server.port), wire.data(many, 1, b"x"), wire.fin(many, 2)
        )
        over: set[int] = set()
        while len(over) < many:
            message = pipe.receive()
            assert message is not None
            if message.kind == "fin":
                over.add(message.conn)
    took = time.time() - began
    told = records.of(path, "conn")
    assert [r["rx_bytes"] for r in told if r["id"] == many] == [1]
    refused = [r for r in told if r["end"] == "refused"]
    (counters,) = records.of(path, "counters")
    assert EMPTY_RECORDS <= len(refused) <= EMPTY_RECORDS * (took + 2)
    assert len(refused) + counters["unrecorded"] == many - 1


def test_samples_come_at_the_interval(box: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "rp.jsonl"
    with pair(box, tmp_path, pipes=1, rp=["--stats", str(path), "--stats-interval", "0.1"]):
        until("30 samples", lambda: len(records.of(path, "pipe")) >= 30)
    times = [record["time"] for record in records.of(path, "pipe")]
    assert 1.5 < times[29] - times[0] < 6


def test_stats_that_cannot_be_written_are_an_error(box: Namespace, tmp_path: Path) -> None:
    for argv in ([binary("rp"), "--stats", "/no/such/dir/x", "4"],
                 [binary("lp"), "--stats", "/no/such/dir/x", "127.0.0.1", "4"]):  # fmt: skip
        code, _, err = finish(argv, box, 10)
        assert code == 2, err
        assert len(err.strip().splitlines()) == 1
        assert "/no/such/dir/x" in err


def test_sigusr1_prints_pipes_and_connections(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        pair(box, tmp_path) as proxies,
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        sock.sendall(b"x" * 1000)
        read_exactly(sock, 1000)
        for proxy in (proxies.rp, proxies.lp):
            before = len(proxy.log)
            proxy.send_signal(signal.SIGUSR1)
            until(
                f"{proxy.name}'s table to name the connection",
                lambda p=proxy, n=before: f"127.0.0.1:{server.port}" in p.log[n:],
            )
            until(
                f"{proxy.name}'s table to have a line for each of 4 pipes",
                lambda p=proxy, n=before: len(re.findall(r"^ +[0-3] .*\d", p.log[n:], re.M)) >= 4,
            )
            assert "1000" in proxy.log[before:]
        sock.sendall(b"still there")
        assert read_exactly(sock, 11) == b"still there"
