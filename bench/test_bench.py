# SPDX-License-Identifier: MIT
"""The bench's own arithmetic and parsers: nothing here measures anything."""

import contextlib
import dataclasses
import json
import math
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from bench import accounts, programs, report, stats, tools
from bench.__main__ import QUICK, default_rivals, parse_arguments, wanted_rivals, write
from bench.kinds import ALL, ASKS, BULKS, MORE, STANDARD
from bench.measures import Bench, arguments, last_words, loaded, metrics
from bench.namespace import CONTROLS
from bench.programs import Program, Trouble, running
from bench.rivals import BEFORE, BY_NAME, LIMIT, OURS, RIVALS, Place
from bench.run import BLOCKS_MOST, WITHOUT_CONTROL, Run, Step, plan

ROOT = Path(__file__).parents[1]
PLACE = Place(Path(), {}, (0, 1), 1024)


def test_ratio_is_taken_within_a_block_only() -> None:
    ours, theirs = {0: 2.0, 1: 9.0, 3: 4.0}, {0: 4.0, 2: 1.0, 3: 2.0}
    assert stats.ratios(ours, theirs) == [0.5, 2.0]
    assert stats.differences(ours, theirs) == [-2.0, 2.0]


def test_spread_of_some_and_of_nothing() -> None:
    assert stats.Spread.of([3.0, 1.0, 2.0, 10.0]) == stats.Spread(2.5, 1.0, 10.0, 4)
    assert stats.Spread.of([]) is None


@pytest.mark.parametrize(("count", "outside"), [(1, 0), (8, 0), (9, 1), (12, 2), (20, 5)])
def test_the_interval_of_a_median(count: int, outside: int) -> None:
    """By the sign test's table: of 9 values the second to the eighth."""
    assert stats.beyond(count) == outside
    values = [float(it) for it in range(count)]
    spread = stats.Spread.of(values[::-1])
    assert spread and (spread.low, spread.high) == (outside, count - 1 - outside)


@pytest.mark.parametrize("count", [9, 15])
def test_the_interval_holds_the_median_as_often_as_it_says(count: int) -> None:
    dice = random.Random(count)
    held = 0
    for _ in range(2000):
        spread = stats.Spread.of([dice.expovariate(1.0) for _ in range(count)])
        held += spread is not None and spread.low <= math.log(2) <= spread.high
    assert held >= 0.94 * 2000


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
    assert accounts.ticked_seconds(os.getpid()) > 0
    assert accounts.rss_kib(os.getpid()) > 1000


def test_metrics_of_each_measure() -> None:
    bulk = {"bytes": 2_000_000_000, "seconds": 4.0, "cpu_seconds": {"rp": 1.0, "lp": 2.0}}
    assert metrics("down", bulk) == {"down.rate": 0.5, "down.cpu": 1.5}
    opens = {"connections": 500, "seconds": 0.25, "cpu_seconds": {"rp": 0.5}}
    assert metrics("connects", opens) == {"connects.rate": 2000.0, "connects.cpu": 1000.0}
    churned = {**opens, "unanswered": 3, "pause_s": 0.25, "p99_us": 4000.0}
    assert metrics("churn", churned) == {
        "churn.rate": 2000.0,
        "churn.cpu": 1000.0,
        "churn.pause": 250.0,
        "churn.p99": 4.0,
        "churn.unanswered": 3,
    }
    idle = {"connections": 100, "rss_kib": {"rp": 300, "lp": 100}}
    assert metrics("idle", idle) == {"idle.memory": 4.0, "idle.rp": 3.0, "idle.lp": 1.0}
    assert metrics("down-256", bulk) == {"down-256.rate": 0.5, "down-256.cpu": 1.5}
    wired = {
        "bulk": {"bytes": 1000, "between": 1050},
        "ask": {"requests": 10, "between": 4000},
    }
    assert metrics("wire", wired) == pytest.approx({"wire.bulk": 5.0, "wire.ask": 400.0})
    asked = {"p50_us": 1.0, "p99_us": 2.0}
    assert metrics("ask-16k", asked) == {"ask-16k.p50": 1.0, "ask-16k.p99": 2.0}
    assert metrics("echo", {"failed": "no figure"}) == {}
    paced = {
        "tcp": {"packets": 1000, "came": 1000, "cpu_seconds": {"rp": 0.002, "lp": 0.003}},
        "udp": {"packets": 1000, "came": 750, "cpu_seconds": {"rp": 0.004, "lp": 0.006}},
    }
    found = {"udp.cpu": 10.0, "udp.tcp": 5.0, "udp.ratio": 2.0, "udp.lost": 25.0}
    assert metrics("udp", paced) == pytest.approx(found)
    paced["socks"] = {"packets": 1000, "came": 990, "cpu_seconds": {"rp": 0.004, "lp": 0.007}}
    by_socks = {"socks.cpu": 11.0, "socks.ratio": 2.2, "socks.lost": 1.0}
    assert metrics("udp", paced) == pytest.approx(found | by_socks)
    paced["tcp-down"] = {"packets": 1000, "came": 1000, "cpu_seconds": {"rp": 0.004, "lp": 0.004}}
    paced["udp-down"] = {"packets": 1000, "came": 900, "cpu_seconds": {"rp": 0.008, "lp": 0.004}}
    down = {"udp-down.cpu": 12.0, "udp-down.tcp": 8.0, "udp-down.ratio": 1.5, "udp-down.lost": 10.0}
    assert metrics("udp", paced) == pytest.approx(found | by_socks | down)


def test_what_the_load_is_told() -> None:
    bench = Bench(Path(), PLACE, QUICK)
    ours = BY_NAME[OURS]
    assert arguments("both", ours, bench)[:2] == ["bulk", "both"]
    for way in ("down", "up", "both"):
        for many in ("16", "256", "2000"):
            told = arguments(f"{way}-{many}", ours, bench)
            assert told == ["bulk", way, str(QUICK.bytes), many]
    asked = arguments("ask-16k-64-beside", ours, bench)
    assert asked == ["ask", "16384", "64", str(QUICK.round_trips), "beside"]
    assert arguments("ask-100", ours, bench)[1:3] == ["100", "1"]
    assert set(ALL) == set(STANDARD) | set(MORE) >= set(BULKS) | set(ASKS)
    titles = [report.MANY[name] for name in BULKS if name in MORE]
    assert len(set(titles)) == len(titles) and {"both", "both 16", "up 2,000"} <= set(titles)
    assert set(parse_arguments([]).only) == {*STANDARD, "udp"}


def test_plan_is_the_same_for_a_seed_and_complete() -> None:
    steps = list(plan(RIVALS, ALL, 5, 1, CONTROLS))
    assert steps == list(plan(RIVALS, ALL, 5, 1, CONTROLS))
    assert steps != list(plan(RIVALS, ALL, 5, 2, CONTROLS))
    assert len(set(steps)) == len(steps)
    for rival in RIVALS:
        for measure in ALL:
            rounds = 1 if measure in WITHOUT_CONTROL else len(CONTROLS)
            count = BLOCKS_MOST.get(measure, 5) * rounds
            found = [s for s in steps if (s.measure, s.rival) == (measure, rival.name)]
            assert len(found) == (count if measure in rival.measures else 0)


def test_plan_keeps_what_is_compared_together() -> None:
    steps = [s for s in plan(RIVALS, ("down", "up"), 3, 9, CONTROLS)]
    kinds = [(s.measure, s.control) for s in steps]
    runs = [kind for i, kind in enumerate(kinds) if i == 0 or kinds[i - 1] != kind]
    assert len(runs) <= 12


class Noise(Run):
    """Takes nothing; others have the share of the cores that is told for each step in turn."""

    def __init__(self, shares: list[float], again: int) -> None:
        super().__init__(Bench(Path(), PLACE, QUICK), 0.0, again)
        self.shares = iter(shares)

    def take(self, step: Step, of: int) -> dict[str, Any]:
        return {**dataclasses.asdict(step), "others_share": next(self.shares)}


def steps_of(*measures: str) -> list[Step]:
    return [Step(0, measure, rival, "cubic") for measure in measures for rival in ("a", "b")]


def test_what_was_noisy_is_repeated_with_all_that_it_is_compared_with() -> None:
    run = Noise([0.1, 0.3, 0.0, 0.2, 0.0, 0.1], again=2)
    run.carry_out(steps_of("down", "up"), lambda whole: None)
    assert [it["others_share"] for it in run.repeated] == [0.1, 0.3]
    assert [it["measure"] for it in run.figures] == ["down", "down", "up", "up"]
    assert [it["others_share"] for it in run.figures] == [0.0, 0.2, 0.0, 0.1]
    assert not any(it["noisy"] for it in run.figures)


def test_of_noise_that_stays_the_least_counts() -> None:
    run = Noise([0.9, 0.9, 0.4, 0.5, 0.3, 0.6], again=2)
    run.carry_out(steps_of("down"), lambda whole: None)
    assert [it["others_share"] for it in run.figures] == [0.4, 0.5]
    assert len(run.repeated) == 4
    assert all(it["noisy"] for it in run.figures)
    run = Noise([0.9, 0.9], again=0)
    run.carry_out(steps_of("down"), lambda whole: None)
    assert len(run.figures) == 2 and not run.repeated


def test_who_interrupts_a_run_has_the_blocks_before(tmp_path: Path) -> None:
    run = Noise([0.1] * 3, again=0)
    steps = [dataclasses.replace(it, block=block) for block in (0, 1) for it in steps_of("down")]

    def save(whole: int) -> None:
        figures = [{**it, "failed": "nothing was taken"} for it in run.figures]
        write(result_of(figures) | {"blocks": whole, "planned": 2}, tmp_path)

    with pytest.raises(StopIteration):
        run.carry_out(steps, save)
    assert len(json.loads((tmp_path / "bench.json").read_text())["figures"]) == 2
    assert "- 1 of 2 blocks, seed 1" in (tmp_path / "bench.md").read_text()


def test_every_relay_can_be_asked_for_and_some_are_not_by_default(tmp_path: Path) -> None:
    every = wanted_rivals(parse_arguments(["--rivals", "all", "--build", str(tmp_path)]))
    assert set(every) == set(BY_NAME) - {BEFORE}
    default = wanted_rivals(parse_arguments(["--build", str(tmp_path)]))
    assert set(default) == {it.name for it in RIVALS if not it.extra} - {BEFORE, "sing-box"}


def result_of(figures: list[dict[str, object]]) -> dict[str, object]:
    return {
        "command": "bench",
        "started": "now",
        "seed": 1,
        "blocks": 2,
        "planned": 2,
        "size": {"bytes": 1, "churn_rate": 2, "churn_seconds": 3},
        "machine": {
            "cpu": "c",
            "processors_used": [0, 1],
            "kernel": "k",
        },
        "controls": ["cubic", "bbr"],
        "versions": {},
        "rivals": [LIMIT, "haproxy", OURS],
        "skipped": {"ssh": "not installed"},
        "repeated": [],
        "figures": figures,
    }


def test_report_tells_ratios_failures_and_what_was_left_out() -> None:
    def bulk(block: int, rival: str, seconds: float) -> dict[str, object]:
        return {
            "block": block,
            "measure": "down",
            "rival": rival,
            "control": "cubic",
            "bytes": 10**9,
            "seconds": seconds,
            "cpu_seconds": {"x": 1.0},
            "others_share": 0.1,
        }

    figures = [
        bulk(0, OURS, 2.0),
        bulk(0, "haproxy", 1.0),
        bulk(1, "haproxy", 1.0),
        bulk(0, LIMIT, 0.5),
        {**bulk(1, "haproxy", 0.25), "control": "bbr", "noisy": True},
        {
            "block": 1,
            "measure": "down",
            "rival": OURS,
            "control": "cubic",
            "failed": "it fell over",
            "others_share": 0.6,
        },
    ]
    result = result_of(figures)
    result["repeated"] = [{**figures[-1], "failed": "it fell early", "others_share": 0.9}]
    for text in (report.text(result), report.markdown(result)):
        assert "0.50" in text
        assert "1.00 (1.00..1.00)" in text
        assert "Other processes had 10% of the two cores in the median measurement, 60%" in text
        assert "Failed: tm3, down, cubic: it fell over (1 times)" in text
        # What was measured again is in no table, and what failed of it is told all the same.
        assert "Failed: tm3, down, cubic: it fell early (1 times)" in text
        assert "1 measurements are in no table: others had over 25% of the cores" in text
        # Each kind by itself: HAProxy's third figure is of bbr, where there is nothing else.
        assert text.count("Bulk, one connection, cubic") == 1
        assert text.count("Bulk, one connection, bbr") == 1
        assert "4.00" in text and "1.00 (1.00..4.00)" not in text
        assert text.count("Divided by two copy loops") == 1 and "0.25" in text
        assert "Not measured: ssh: not installed." in text
        # What was noisy in each try is marked, and nothing else.
        assert text.count("down GB/s *1") == 1 and text.count("down GB/s") == 2
        assert "*n: in so many blocks others had over 25% of the cores in each try" in text


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


def test_a_load_that_hangs_is_killed_and_told() -> None:
    """As behind a relay that takes connections and answers nothing."""
    argv = [sys.executable, "-c", "import time; time.sleep(60)"]
    began = time.monotonic()
    with pytest.raises(Trouble, match=r"no figure after 0\.3 s"), loaded(argv, 0.3):
        pytest.fail("it has a figure")
    assert time.monotonic() - began < 30


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


INSIDE = """
from bench import namespace
namespace.subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
for name in ("cubic", "reno"):
    print(namespace.why_not(name) or namespace.controls_of_a_connection())
print(namespace.why_not("of-nobody"))
"""


COUNTS = """
import socket, threading
from pathlib import Path
from bench import between, namespace

def send(port, size):
    with socket.create_server(("127.0.0.1", port)) as listening:
        near = socket.create_connection(("127.0.0.1", port))
        far, _ = listening.accept()
        thread = threading.Thread(target=lambda: (near.sendall(bytes(size)), near.close()))
        thread.start()
        while far.recv(1 << 20):
            pass
        far.close()
        thread.join()

namespace.subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with between.counted((6000, 6010)) as count:
    send(7000, 1_000_000)
    print(count())
    send(6010, 1_000_000)
    print(count())
print(Path("/sys/class/net/lo/mtu").read_text().strip())
names, values = (it.split() for it in Path("/proc/net/snmp").read_text().splitlines()
                 if it.startswith("Tcp:"))
print(values[names.index("RetransSegs")])
"""


def test_bytes_between_the_halves_are_counted_with_their_headers() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a network namespace")
    if not tools.which("nft"):
        pytest.skip("no nftables here")
    argv = ["unshare", "--net", sys.executable, "-c", COUNTS]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    others, ours, mtu, again = map(int, done.stdout.split())
    assert others == 0 and mtu == 65_536
    # Where the receiver is late TCP asks by sending a segment twice, and that is counted as well.
    most = 1_000_000 + again * mtu
    # 1,448 bytes a packet of 1,500, and acknowledgements, of 52 bytes, for each packet at most.
    assert 1_000_000 * 1_500 / 1_448 <= ours <= most * 1_552 / 1_448 + 1_000


SLEEPS = """
import os, sys, time
from bench import namespace
if not namespace.inside():
    sys.exit(namespace.run_inside([], "interrupted"))
print(os.readlink("/proc/self/ns/pid"), flush=True)
time.sleep(300)
"""


def inhabitants(namespace: str) -> int:
    found = 0
    for entry in Path("/proc").glob("[0-9]*/ns/pid"):
        with contextlib.suppress(OSError):
            found += str(entry.readlink()) == namespace
    return found


def test_who_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make namespaces")
    (tmp_path / "interrupted.py").write_text(SLEEPS)
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    argv = [sys.executable, "-m", "interrupted"]
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True) as process:
        there = process.stdout.readline().strip()
        assert inhabitants(there) > 0
        process.terminate()
        process.wait(10)
    programs.wait_until(lambda: not inhabitants(there), "all that ran inside to end", 10)


def test_connections_have_the_congestion_control_that_was_set() -> None:
    """Also where the system does not allow it to everybody, and without a trace outside."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a network namespace")
    argv = ["unshare", "--net", sys.executable, "-c", INSIDE]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    *found, unknown = done.stdout.splitlines()
    assert found == ["{'cubic'}", "{'reno'}"]
    assert "no such congestion control" in unknown


def test_the_time_of_ended_threads_counts() -> None:
    """And to the nanosecond: a tick is 10 ms here."""
    before = accounts.nanoseconds(os.getpid())
    thread = threading.Thread(target=lambda: sum(range(3_000_000)))
    thread.start()
    thread.join()
    took = accounts.nanoseconds(os.getpid()) - before
    assert 5_000_000 < took < 5_000_000_000
    assert took % 1_000_000
    with pytest.raises(OSError):
        accounts.nanoseconds(2**22 + 1)  # beyond any process


def fake_go(tmp: Path, script: str) -> str:
    path = tmp / "go"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_what_go_builds_is_there_and_its_caches_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = tmp_path / "build"
    monkeypatch.setattr(
        tools, "which", lambda _: fake_go(tmp_path, 'mkdir $GOCACHE; >"$GOBIN/sing-box"')
    )
    assert tools.build_sing_box(build) is None
    assert tools.sing_box_path(build).exists()
    assert {it.name for it in (build / "bench-tools").iterdir()} == {
        tools.sing_box_path(build).name,
        "install.log",
    }
    monkeypatch.setattr(tools, "which", lambda _: fake_go(tmp_path, "echo no such module; exit 1"))
    assert tools.build_sing_box(build) is None, "it is there already"
    why = tools.build_muxes(build)
    assert why and "failed, see" in why and "build.log" in why
    assert (build / "bench-tools" / "build.log").read_text() == "no such module\n"
    monkeypatch.setattr(tools, "which", lambda _: None)
    assert tools.build_muxes(build) == "no Go tool chain to build it with"


def test_sing_box_has_a_version() -> None:
    """As Go installs it, it prints `sing-box version unknown`."""
    assert tools.version("sing-box", "") == f"sing-box {tools.SING_BOX_VERSION}"


def test_the_libraries_tell_their_versions() -> None:
    told = tools.version("muxes", "")
    assert "github.com/xtaci/smux v" in told and "github.com/hashicorp/yamux v" in told


def test_who_cannot_carry_datagrams_is_not_told_to() -> None:
    """By default they are measured, and lp of the baseline refuses to start with them."""
    place = Place(Path(), {"rp": "rp", "lp": "lp"}, (0, 1), 1024, datagrams=True)
    for name, told in ((OURS, True), ("tm3-baseline", False)):
        words = BY_NAME[name].programs(place)[1].argv
        assert any("udp:" in word for word in words) is told
        assert ("127.0.0.1:7200" in words) is told


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
    (tmp_path / "old" / "lp").mkdir()  # as where DIR is a tree and not a build
    assert found == tools.find(names, tmp_path / "now", tmp_path / "old")
    assert BEFORE in default_rivals(tmp_path / "now", tmp_path / "old")
    assert BEFORE not in default_rivals(tmp_path / "now", None)
