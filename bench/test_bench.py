# SPDX-License-Identifier: MIT
"""The bench's own arithmetic and parsers: nothing here measures anything."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import accounts, programs, report, stats, tools
from bench.__main__ import default_rivals, parse_arguments
from bench.measures import last_words, metrics
from bench.programs import Program, Trouble, running
from bench.rivals import ALL, BEFORE, OURS, RIVALS
from bench.run import IDLE_BLOCKS, plan


def test_ratio_is_taken_within_a_block_only() -> None:
    ours, theirs = {0: 2.0, 1: 9.0, 3: 4.0}, {0: 4.0, 2: 1.0, 3: 2.0}
    assert stats.ratios(ours, theirs) == [0.5, 2.0]
    assert stats.differences(ours, theirs) == [-2.0, 2.0]


def test_spread_of_some_and_of_nothing() -> None:
    assert stats.Spread.of([3.0, 1.0, 2.0, 10.0]) == stats.Spread(2.5, 1.0, 10.0, 4)
    assert stats.Spread.of([]) is None


def test_stat_of_a_process_with_an_unkind_name() -> None:
    text = "42 (a) b (c)) S 7 1 1 0 -1 4194304 100 0 0 0 11 22 3 4 20 0 1 0 99 1 1"
    assert accounts.parse_stat(text) == accounts.Stat(parent=7, cpu_ticks=40)


def test_rss_and_its_absence() -> None:
    assert accounts.parse_rss_kib("Name:\tx\nVmRSS:\t    1234 kB\n") == 1234
    assert accounts.parse_rss_kib("Name:\tx\nState:\tZ (zombie)\n") == 0


def test_listening_ports_are_those_in_state_listen() -> None:
    table = (
        "  sl  local_address rem_address   st tx_queue\n"
        "   0: 0100007F:1BBC 00000000:0000 0A 00000000\n"
        "   1: 0100007F:1B58 0100007F:C000 01 00000000\n"
    )
    assert accounts.parse_listening(table) == {7100}


def test_busy_ticks_are_those_of_the_cores_asked_for() -> None:
    table = (
        "cpu  111 0 0 0 0 0 0 0 0 0\n"
        "cpu0 1 2 3 400 500 6 7 8 1000 2000\n"
        "cpu1 10 0 0 9 9 0 0 0 0 0\n"
        "cpu10 7000 0 0 9 9 0 0 0 0 0\n"
        "intr 5\n"
    )
    assert accounts.parse_busy_ticks(table, {0}) == 27
    assert accounts.parse_busy_ticks(table, {0, 1}) == 37


def test_family_includes_grandchildren_and_nobody_else() -> None:
    stats_of = {p: accounts.Stat(parent, 0) for p, parent in ((2, 1), (3, 2), (4, 3), (5, 1))}
    assert accounts.family(2, stats_of) == {2, 3, 4}


def test_own_cpu_time_and_memory_are_seen() -> None:
    assert accounts.cpu_seconds(os.getpid()) > 0
    assert accounts.rss_kib(os.getpid()) > 1000


def test_metrics_of_each_measure() -> None:
    bulk = {"bytes": 2_000_000_000, "seconds": 4.0, "cpu_seconds": {"rp": 1.0, "lp": 2.0}}
    assert metrics("down", bulk) == {"down.rate": 0.5, "down.cpu": 1.5}
    opens = {"connections": 500, "seconds": 0.25, "cpu_seconds": {"rp": 0.5}}
    assert metrics("connects", opens) == {"connects.rate": 2000.0, "connects.cpu": 1000.0}
    idle = {"connections": 100, "rss_kib": {"rp": 300, "lp": 100}}
    assert metrics("idle", idle) == {"idle.memory": 4.0, "idle.rp": 3.0, "idle.lp": 1.0}
    assert metrics("echo", {"failed": "no figure"}) == {}
    paced = {
        "tcp": {"packets": 1000, "came": 1000, "cpu_seconds": {"rp": 0.002, "lp": 0.003}},
        "udp": {"packets": 1000, "came": 750, "cpu_seconds": {"rp": 0.004, "lp": 0.006}},
    }
    found = metrics("udp", paced)
    assert found == pytest.approx(
        {"udp.cpu": 10.0, "udp.tcp": 5.0, "udp.ratio": 2.0, "udp.lost": 25.0}
    )


def test_plan_is_the_same_for_a_seed_and_complete() -> None:
    steps = list(plan(RIVALS, ALL, 5, 1))
    assert steps == list(plan(RIVALS, ALL, 5, 1))
    assert steps != list(plan(RIVALS, ALL, 5, 2))
    assert len(set(steps)) == len(steps)
    for rival in RIVALS:
        for measure in ALL:
            blocks = IDLE_BLOCKS if measure == "idle" else 5
            found = [s for s in steps if (s.measure, s.rival) == (measure, rival.name)]
            assert len(found) == (blocks if measure in rival.measures else 0)


def test_plan_keeps_what_is_compared_together() -> None:
    steps = [s for s in plan(RIVALS, ("down", "up"), 3, 9)]
    runs = [s.measure for i, s in enumerate(steps) if i == 0 or steps[i - 1].measure != s.measure]
    assert len(runs) <= 6


def result_of(figures: list[dict[str, object]]) -> dict[str, object]:
    return {
        "command": "bench",
        "started": "now",
        "seed": 1,
        "blocks": 2,
        "size": {"bytes": 1},
        "machine": {
            "cpu": "c",
            "processors_used": [0, 1],
            "kernel": "k",
            "congestion_control": "cubic",
        },
        "versions": {},
        "rivals": ["haproxy", OURS],
        "skipped": {"ssh": "not installed"},
        "figures": figures,
    }


def test_report_tells_ratios_failures_and_what_was_left_out() -> None:
    def bulk(block: int, rival: str, seconds: float) -> dict[str, object]:
        return {
            "block": block,
            "measure": "down",
            "rival": rival,
            "bytes": 10**9,
            "seconds": seconds,
            "cpu_seconds": {"x": 1.0},
            "others_share": 0.1,
        }

    figures = [
        bulk(0, OURS, 2.0),
        bulk(0, "haproxy", 1.0),
        bulk(1, "haproxy", 1.0),
        {
            "block": 1,
            "measure": "down",
            "rival": OURS,
            "failed": "it fell over",
            "others_share": 0.6,
        },
    ]
    for text in (report.text(result_of(figures)), report.markdown(result_of(figures))):
        assert "0.50" in text
        assert "1.00 (1.00..1.00)" in text
        assert "Other processes had 10% of the two cores in the median measurement, 60%" in text
        assert "Failed: tm3, down: it fell over (1 times)" in text
        assert "Not measured: ssh: not installed." in text


@pytest.mark.parametrize("arguments", [["--only", "sideways"], ["--reps", "0"], ["--rivals", "x"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments(arguments)
    assert ended.value.code == 2


def test_a_program_that_ends_early_is_told_with_its_last_words(tmp_path: Path) -> None:
    argv = (sys.executable, "-c", "print('one'); print('no such port')")
    words = "relay ended at once: no such port"
    with pytest.raises(Trouble, match=words), running([Program("relay", argv, port=1)], tmp_path):
        pytest.fail("it counts as running")


def test_last_words_are_kept_by_program(tmp_path: Path) -> None:
    (tmp_path / "rp.log").write_text("".join(f"line {n}\n" for n in range(100)))
    (tmp_path / "lp.log").write_text("")
    (tmp_path / "sshd_config").write_text("not a log\n")
    words = last_words(tmp_path)
    assert set(words) == {"rp", "lp"}
    assert words["rp"][-1] == "line 99"
    assert len(words["rp"]) == 20


def test_a_program_is_stopped_when_its_user_fails(tmp_path: Path) -> None:
    argv = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)")
    seen: list[programs.Running] = []
    with pytest.raises(KeyError), running([Program("relay", argv, says="up")], tmp_path) as relay:
        seen += relay
        raise KeyError
    assert seen[0].process.returncode is not None


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tools.build_load(tmp_path_factory.mktemp("load"))


@pytest.fixture
def server(load: Path, tmp_path: Path) -> Iterator[int]:
    """The load generator's server on a port of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with running([Program("load", (str(load), "serve", str(port)), port=port)], tmp_path):
        yield port


def run_load(load: Path, port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(load), str(port), "-", *arguments]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (("check", "1000003"), "bytes", 1_000_003),
        (("bulk", "down", "5000000", "1"), "bytes", 5_000_000),
        (("bulk", "up", "5000000", "4"), "bytes", 5_000_000),
        (("connects", "50"), "connections", 50),
        (("idle", "50"), "connections", 50),
        (("echo", "20"), "round_trips", 20),
        (("paced-tcp", "120"), "came", 120),
    ],
)
def test_load_does_what_it_says(
    load: Path, server: int, arguments: tuple[str, ...], key: str, value: int
) -> None:
    done = run_load(load, server, *arguments)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[key] == value


def test_datagrams_that_come_are_counted(load: Path) -> None:
    """Sent to the sink itself all of them are there; sent to another port none is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for to, came in ((port, 120), (other.getsockname()[1], 0)):
            done = run_load(load, to, "paced-udp", "120", str(port))
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout) == {"packets": 120, "came": came}


@contextlib.contextmanager
def bad_relay(target: int, spoil: Callable[[bytes], bytes]) -> Iterator[int]:
    """Relays one connection after the other, spoiling what the server says."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket, change: Callable[[bytes], bytes]) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(change(data))
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", target))
                up = threading.Thread(target=pump, args=(near, far, bytes), daemon=True)
                up.start()
                pump(far, near, spoil)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


@pytest.mark.parametrize(
    "spoil",
    [lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: data[1:] + data[:1]],
    ids=["a flipped bit", "bytes out of order"],
)
def test_check_catches_a_relay_that_spoils_bytes(
    load: Path, server: int, spoil: Callable[[bytes], bytes]
) -> None:
    with bad_relay(server, spoil) as port:
        done = run_load(load, port, "check", "300000")
    assert done.returncode == 1
    assert "wrong after byte" in done.stderr


def test_a_transfer_cut_short_is_a_failure(load: Path, server: int) -> None:
    with bad_relay(server, cut_after(100_000)) as port:
        done = run_load(load, port, "bulk", "down", "300000", "1")
    assert done.returncode == 1
    assert "200000 bytes short" in done.stderr


def cut_after(limit: int) -> Callable[[bytes], bytes]:
    left = limit

    def cut(data: bytes) -> bytes:
        nonlocal left
        if left == 0:
            raise OSError
        data = data[:left]
        left -= len(data)
        return data

    return cut


def test_another_build_beside_ours(tmp_path: Path) -> None:
    names = {"rp", "lp", "rp-before", "lp-before"}
    for build in ("now", "old"):
        (tmp_path / build).mkdir()
        for name in ("rp", "lp"):
            (tmp_path / build / name).touch()
    found = tools.find(names, tmp_path / "now")
    assert set(found.paths) == {"rp", "lp"}
    assert found.missing["rp-before"] == "it needs --before DIR"
    found = tools.find(names, tmp_path / "now", tmp_path / "old")
    assert found.paths["lp-before"] == str(tmp_path / "old" / "lp") and not found.missing
    (tmp_path / "old" / "lp").unlink()
    found = tools.find(names, tmp_path / "now", tmp_path / "old")
    assert found.missing == {"lp-before": f"{tmp_path / 'old' / 'lp'} is not built"}
    assert BEFORE in default_rivals(tmp_path / "now", tmp_path / "old")
    assert BEFORE not in default_rivals(tmp_path / "now", None)
