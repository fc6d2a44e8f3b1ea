# SPDX-License-Identifier: MIT
"""Every workload once for real, each way, in a small lab; and what must not pass for a run."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from base.shell import until
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.workloads import account, buffers, course, iperf, objects, rates, traffic
from experiments.workloads.actors import Bulk, Churn, Objects, Pause, Transfer, Video, Wire
from experiments.workloads.batch import Batch
from experiments.workloads.thin import Thin
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs
from tests.net.measure import Wrong, again_if_late, lateness, shown_to_hold
from topologies.lab import Lab

__all__ = ["labs"]

# A run in which something was late may wait for others' tests, then measures again.
UNTIL_ALONE_S = 600.0
WAYS = [{"way": "direct"}, {"way": "pipes", "binding": "late"}, {"way": "mptcp"}]
WAYS += [{"way": "pipes", "binding": "early", "app_buffer": 100_000}]


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


@contextmanager
def killed_in_the_middle(lab: Lab, pid: int) -> Iterator[None]:
    """Once the server has a connection with bytes that are not acknowledged yet."""

    def busy() -> bool:
        words = ("ss", "-Htn", "state", "established", f"( sport = :{traffic.PORT} )")
        return any(int(line.split()[1]) for line in lab.server.inside(*words).splitlines())

    def run() -> None:
        until("bytes on their way", busy)
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
def test_every_actor(kept: Labs, tmp_path: Path, way: dict[str, object]) -> None:
    with live(kept, tmp_path / "run", configuration(**way)) as made:
        how = traffic.way(made)
        page: dict[str, Any] = {"port": traffic.PORT, "size": 5_000, "count": 5, "parallel": 2}
        found = traffic.play(
            made,
            {
                "file": Transfer(down=200_000, up=1_000, **how),
                "objects": Objects(count=3, pause_s=0.05, **how),
                "up": Objects(count=2, pause_s=0.0, way="up", **how),
                "video": Video(frames=10, frame_bytes=2_000, interval_us=20_000, **how),
                "short": Churn(port=traffic.PORT, count=8, parallel=3),
                "down": Bulk(**how),
                "upload": Bulk(way="up", **how),
                "enough": Bulk(size=10_000, **how),
                "page": Batch(rounds=2, pause_s=0.05, **page),
                "kept": Batch(kept=True, after=("page",), **page),
                "thin": Thin(port=traffic.PORT, count=4, every_s=0.02),
                "wire": Wire(),
                "clock": Pause(seconds=0.5),
            },
        )
    assert 0.08 < found["file"]["completion_s"] < 10
    assert sum(found["file"]["bins"]) == 200_000
    assert len(found["objects"]["seconds"]) == 3
    assert min(found["objects"]["seconds"]) > 0.01, "faster than the round trip"
    assert len(found["up"]["seconds"]) == 2
    assert len(found["video"]["late_s"]) == 10
    assert min(found["video"]["late_s"]) > 0.006, "faster than half the round trip"
    assert len(found["short"]["seconds"]) == 8
    assert len(found["page"]["took_s"]) == 2
    assert min(found["page"]["took_s"]) > 0.03, "three after each other, each a round trip"
    first, second = found["page"]["began_s"]
    assert second >= first + found["page"]["took_s"][0] + 0.05
    assert found["kept"]["began_s"][0] >= second + found["page"]["took_s"][1], "began too early"
    assert len(found["thin"]["seconds"]) == 4
    assert min(found["thin"]["seconds"]) > 0.01, "faster than the round trip"
    assert found["enough"]["total"] == 10_000
    payload = 200_000 + found["down"]["total"]
    # Actors begin and end in threads, not at one instant: 0.3 s at 10 Mbit/s are 375 KB.
    assert found["wire"]["total"][0] > payload - 375_000, "less on the wire than was received"
    assert found["upload"]["total"] > 0
    assert found["file"]["subflows"] in ((None,) if way["way"] != "mptcp" else range(1, 9))


def test_all_subflows_of_mptcp_carry_something(kept: Labs, tmp_path: Path) -> None:
    with live(kept, tmp_path / "run", configuration(way="mptcp")) as made:
        found = traffic.play(made, {"file": Transfer(down=1_000_000, **traffic.way(made))})
        assert found["file"]["subflows"] == 8
        counters = made.lab.client.inside("nstat", "-asz", "MPTcpExtMPJoinSynAckRx")
        assert int(counters.splitlines()[-1].split()[1]) >= 7


def test_over_two_miles_mptcp_has_a_subflow_by_each(kept: Labs, tmp_path: Path) -> None:
    wanted = configuration(way="mptcp", preset="wifi-lte", rtt_ms=None, mbps=None, pipes=0)
    with live(kept, tmp_path / "run", wanted) as made:
        before = came_by(made.lab, 1)
        found = traffic.play(made, {"file": Transfer(down=1_000_000, **traffic.way(made))})
        assert found["file"]["subflows"] == 2
        assert came_by(made.lab, 1) > before + 50_000


def came_by(lab: Lab, mile: int) -> int:
    said = lab.client.inside("ip", "-j", "-s", "link", "show", "dev", f"client-eth{mile}")
    return int(json.loads(said)[0]["stats64"]["rx"]["bytes"])


def test_time_is_what_the_link_takes(kept: Labs, tmp_path: Path) -> None:
    """Ten times as much takes ten times as long; no start of a program is in it."""
    wanted = configuration(way="direct", mbps=8.0)
    with live(kept, tmp_path / "run", wanted, limit_s=UNTIL_ALONE_S) as made:
        for size in (100_000, 1_000_000):

            def check(size: int = size) -> None:
                found = traffic.play(made, {"file": Transfer(down=size, **traffic.way(made))})
                floor, took = rates.floor_s(made.params, size), found["file"]["completion_s"]
                assert took > floor
                if took >= 1.3 * floor + 0.1:
                    raise Wrong(f"{took:.3f} s for {size} bytes, at least {floor:.3f} s")

            shown_to_hold(made.lab, "time", check)


@pytest.mark.slow
def test_objects_wait_behind_bulk(kept: Labs, tmp_path: Path) -> None:
    """4 Mbit/s and 100 ms of queue: an object beside bulk takes longer than one alone."""
    wanted = configuration(way="direct", mbps=4.0)
    with live(kept, tmp_path / "run", wanted, limit_s=UNTIL_ALONE_S) as made:

        def check() -> None:
            alone = objects.beside_bulk(made, bulk=False, count=3)
            beside = objects.beside_bulk(made, count=3)
            assert alone["objects"] == beside["objects"] == 3
            assert beside["bulk_mbps"] <= 4.2
            if not alone["object_p50_s"] < 0.06 < beside["object_p50_s"]:
                raise Wrong(f"{alone['object_p50_s']} s alone, {beside['object_p50_s']} s beside")
            if not beside["bulk_mbps"] > 3.0:
                raise Wrong(f"the bulk had {beside['bulk_mbps']} Mbit/s")

        shown_to_hold(made.lab, "an object", check)


def test_warm_pipes_are_warm_when_the_client_goes(kept: Labs, tmp_path: Path) -> None:
    """The client has started when the pipes are warmed: they are not idle for long."""
    labs: list[Lab] = []

    def check() -> None:
        folder = tmp_path / f"run{len(labs)}"
        with live(kept, folder, configuration(pipes=2, warm=True), limit_s=30) as made:
            labs.append(made.lab)
            traffic.play(made, {"file": Transfer(port=traffic.PORT, down=50_000)})
            told = made.facts["warm"]
        assert told["slow_start_after_idle"] == {"rp": "1", "client": "1"}
        assert told["bytes"] == 1_000_000
        assert len(told["rto"]) == len(told["cwnd"]) == 2
        assert sum(told["cwnd"]) > 25, "no wider than fresh ones"
        assert not list(folder.glob("line-*"))
        if told["cooled"]:
            raise Wrong(f"{told['cooled']} pipes cooled: {told}")

    again_if_late(lambda: lateness(labs[-1]), "warm pipes", check)


def test_idle_pipes_begin_with_small_windows_again(kept: Labs, tmp_path: Path) -> None:
    """What fits the windows of pipes that were just used takes them several round trips."""
    labs: list[Lab] = []

    def took(number: int, **state: Any) -> tuple[float, dict[str, Any]]:
        wide = configuration(pipes=2, warm=True, mbps=100.0, rtt_ms=80.0, **state)
        with live(kept, tmp_path / f"run{number}", wide, limit_s=30) as made:
            labs.append(made.lab)
            found = traffic.play(made, {"file": Transfer(port=traffic.PORT, down=200_000)})
            return found["file"]["completion_s"], made.facts["warm"]

    def check() -> None:
        used, of_used = took(len(labs))
        idle, of_idle = took(len(labs), idle_s=2)
        assert of_idle["idle_s"] == 2 and min(of_idle["lastsnd"]) > 1500
        assert of_idle["cooled"] == len(of_idle["rto"]) == 2, of_idle
        if of_used["cooled"] or idle < used + 0.1:
            raise Wrong(f"{idle:.3f} s after a rest, {used:.3f} without: {of_used}, {of_idle}")
        print(f"{idle:.3f} s after a rest, {used:.3f} without")

    again_if_late(lambda: lateness(labs[-1]), "idle pipes", check)


def test_a_program_that_is_slow_to_end_lets_no_pipe_cool(
    kept: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others want the processors, it takes longer than the pipes' time-out to end."""
    real = traffic.command
    code = "import atexit, time; atexit.register(time.sleep, 2); from experiments.workloads "
    code += "import play; play.main()"

    def command(module: str, *words: str, **how: str) -> list[str]:
        if module != "play":
            return real(module, *words, **how)
        return [*real(module, **how)[:-2], "-c", code, *words]

    monkeypatch.setattr(traffic, "command", command)

    def check() -> None:
        with live(kept, tmp_path / "run", configuration(pipes=2, warm=True), limit_s=30) as made:
            traffic.play(made, {"file": Transfer(port=traffic.PORT, down=50_000)})
            told = made.facts["warm"]
            if told["cooled"]:
                raise Wrong(f"{told['cooled']} pipes cooled: {told}")
            assert max(told["lastsnd"]) < 2000

    again_if_late(list, "warm pipes", check)


def test_a_run_begins_once(kept: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The links' draw begins anew when the pipes are dialled and when the first client goes."""
    seeds: list[int] = []
    monkeypatch.setattr("experiments.prepare.restart", lambda lab, seed: seeds.append(seed))
    with live(kept, tmp_path / "run", configuration()) as made:
        assert seeds == [1]
        for _ in range(2):
            traffic.play(made, {"file": Transfer(port=traffic.PORT, down=10_000)})
            assert seeds == [1, 1]


def test_a_client_that_cannot_start_is_told(kept: Labs, tmp_path: Path) -> None:
    with live(kept, tmp_path / "run", configuration(cc="cubic")) as made:
        with pytest.raises(RunFailed, match=r"client ended with 1: TypeError: .*unknown"):
            actor = Transfer(port=traffic.PORT, down=1)
            monkey = {"do": "experiments.workloads.actors.Transfer", "unknown": 1}
            object.__setattr__(actor, "described", lambda: monkey)
            traffic.play(made, {"file": actor})


def test_a_bulk_at_a_rate_beside_another_program(kept: Labs, tmp_path: Path) -> None:
    """It keeps its rate, and ends when the block does."""
    with live(kept, tmp_path / "run", configuration(way="direct", mbps=20.0)) as made:
        with traffic.beside(made, {"bulk": Bulk(mbps=3.0, port=traffic.PORT)}) as found:
            traffic.play(made, {"clock": Pause(seconds=1.5)})
        assert 2.4 < rates.mbps(found["bulk"]["bins"], 0.3, 1.3) < 3.3


def test_an_account_of_a_download(kept: Labs, tmp_path: Path) -> None:
    """Without copies of what is late: on a busy machine they are 16 KB, 3 % of so little."""
    with live(kept, tmp_path / "run", configuration(pipes=4, warm=True, thin="off")) as made:
        traffic.play(made, {"file": Transfer(port=traffic.PORT, down=500_000)})
        told = account.account(made, connections=1)
        assert len(told.connections("lp")) == 2, "the one that warmed the pipes is one more"
        measures = told.measures()
        assert 0.98 < measures["efficiency"] < 1
        assert measures["pipe_share_max"] >= 0.25 >= measures["pipe_share_min"]
        assert sum(told.shares("down")) == pytest.approx(1)
        largest = told.largest("down")
        assert largest is not None
        assert largest["rx_bytes"] > 500_000


@pytest.mark.slow
@pytest.mark.parametrize("way", ["direct", "pipes"])
def test_iperf3(kept: Labs, tmp_path: Path, way: str) -> None:
    with live(kept, tmp_path / "run", configuration(way=way), limit_s=UNTIL_ALONE_S) as made:

        def both() -> None:
            """A second of fresh pipes: how much is chance, but never more than the link."""
            found = iperf.throughput(made, "both", 1)
            assert found.keys() == {"down", "up"}
            assert all(each.mbps < 21 for each in found.values()), found
            if not all(each.mbps > 1 and each.series_mbps for each in found.values()):
                raise Wrong(f"next to nothing in a second: {found}")

        again_if_late(lambda: lateness(made.lab), "iperf3 both ways", both)
        for direction in ("down", "up"):
            assert iperf.throughput(made, direction, 1).keys() == {direction}


def test_the_walk_through(kept: Labs, tmp_path: Path) -> None:
    with live(kept, tmp_path / "run", configuration()) as made:
        done = course.walk_through(made, 10, 4096, 4096)
        assert len(done) == 10
        assert done == sorted(done)
        assert done[0] > 0.01
        assert account.account(made, connections=1).connections("rp")[0]["tx_bytes"] >= 40_960


def test_a_client_that_is_cut_off_has_failed(kept: Labs, tmp_path: Path) -> None:
    """Its server dies in the middle: a reset, not a shorter file."""
    with live(kept, tmp_path / "run", configuration(way="direct", mbps=2.0)) as made:
        server = made.kept("traffic", lambda: traffic.server(made.lab))
        actors = {"file": Transfer(down=10_000_000, **traffic.way(made))}
        with (
            killed_in_the_middle(made.lab, server.pid),
            pytest.raises(RunFailed, match=r"CutShort|Reset"),
        ):
            traffic.play(made, actors)
        assert "client" in " ".join(path.name for path in made.folder.iterdir())


def test_pipes_that_break_are_a_failed_run(kept: Labs, tmp_path: Path) -> None:
    with live(kept, tmp_path / "run", configuration(mbps=2.0)) as made:
        made.kept("traffic", lambda: traffic.server(made.lab))
        assert made.pair is not None
        actors = {"file": Transfer(down=10_000_000, **traffic.way(made))}
        with (
            killed_in_the_middle(made.lab, made.pair.rp.pid),
            pytest.raises(RunFailed, match=r"CutShort|Reset"),
        ):
            traffic.play(made, actors)


def test_a_run_ends_at_its_deadline(kept: Labs, tmp_path: Path) -> None:
    with live(kept, tmp_path / "run", configuration(way="direct", mbps=0.5), limit_s=2) as made:
        began = time.monotonic()
        with pytest.raises(RunFailed, match=r"not done|TimeoutError"):
            traffic.play(made, {"file": Transfer(down=10_000_000, **traffic.way(made))})
        assert time.monotonic() - began < 8


def test_send_buffers_that_were_not_asked_for(kept: Labs, tmp_path: Path) -> None:
    wanted = configuration(binding="early", pipe_sndbuf=100_000)
    with live(kept, tmp_path / "run", wanted) as made:
        buffers.check(made)
        made.params = {**wanted, "pipe_sndbuf": 200_000}
        with pytest.raises(RunFailed, match="not 200000"):
            buffers.check(made)
