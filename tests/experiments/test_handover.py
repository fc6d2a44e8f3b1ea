# SPDX-License-Identifier: MIT
"""From Bluetooth to WiFi: what the manager does and when, and the application misses nothing."""

import itertools
import math
import os
import random
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from base.shell import until
from base.sources import ROOT
from experiments import parameters
from experiments.catalogue import handover
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.prepare import More
from experiments.workloads.pattern import WrongByte
from experiments.workloads.rtapp import client, server
from experiments.workloads.rtapp.chunk import SIZE, chunk, number_of
from experiments.workloads.rtapp.experiment import PATHS, longest_gap
from tests.experiments.workload_run import live
from tests.net.conftest import labs
from tests.net.measure import Wrong, again_if_late
from topologies import manager, rssi
from topologies.manager import Act, Periods
from topologies.parameter import ParameterError
from topologies.rssi import Rssi

__all__ = ["labs"]

AWAY = Rssi(((10.0, -80.0), (20.0, -100.0), (40.0, -100.0), (50.0, -80.0)))


def test_the_signal_is_straight_between_points() -> None:
    assert [AWAY.at(it) for it in (0.0, 10.0, 15.0, 30.0, 45.0, 99.0)] == [
        *(-80.0, -80.0, -90.0, -100.0, -90.0, -80.0)
    ]
    assert AWAY.below(-90.0) == 15.0
    assert AWAY.below(-90.0, 17.0) == 17.0
    assert AWAY.above(-85.0, 17.0) == 47.5
    assert AWAY.below(-101.0) is None and AWAY.above(-79.0) is None
    assert AWAY.below(-90.0, 46.0) is None


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ((), "has no point"),
        (((1.0, -80.0), (0.5, -90.0)), "goes back in time: 0.5 s behind 1 s"),
        (((1.0, -80.0), (1.0, -90.0)), "goes back in time: 1 s behind 1 s"),
        (((0.0, math.nan),), "is not finite"),
    ],
)
def test_a_wrong_signal_is_named(points: tuple[tuple[float, float], ...], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Rssi(points)


def test_a_signal_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "walk"
    path.write_text("# seconds dBm\n0 -80\n\n10 -95.5\n")
    assert rssi.read(path) == Rssi(((0.0, -80.0), (10.0, -95.5)))
    for wrong in ("1", "1 x", "1 2 3"):
        path.write_text(f"0 -80\n{wrong}\n")
        with pytest.raises(ParameterError, match=f"line 2: '{wrong}' is not seconds and dBm"):
            rssi.read(path)


def acts(policy: str, periods: Periods, until: float = 60.0) -> list[tuple[float, Act]]:
    found = manager.plan(AWAY, policy, periods, until)
    return [(round(it.at_s, 3), it.act) for it in found]


PERIODS = Periods(p1=3.0, p2=2.0, p3=1.0, p4=4.0, back=0.5)
SCANS = (Act.DISCOVER, Act.DISCOVERED)


def test_passively_everything_comes_after_the_end() -> None:
    assert acts("h1", PERIODS) == [
        (17.5, Act.BLUETOOTH_DIES),
        (20.5, Act.USE_NONE),
        (23.5, Act.WIFI_ON),
        (23.5, Act.USE_WIFI),
        (27.5, Act.END),
        (42.5, Act.BLUETOOTH_LIVES),
        (47.5, Act.USE_NONE),
        (47.5, Act.WIFI_OFF),
        (47.5, Act.END),
        (48.0, Act.USE_BLUETOOTH),
    ]


@pytest.mark.parametrize(("policy", "moved"), [("h2", 19.0), ("h3", 16.0)])
def test_beforehand_the_signal_is_what_counts(policy: str, moved: float) -> None:
    """It is weak at 15 s, which the discovery at 16 s sees; strong at 47.5 s."""
    found = acts(policy, PERIODS)
    back = moved + 5.0 * math.ceil((47.5 - moved) / 5.0)
    assert [it for it in found if it[1] not in SCANS] == sorted(
        [
            (17.5, Act.BLUETOOTH_DIES),
            *((moved, act) for act in (Act.WIFI_ON, Act.USE_WIFI, Act.MOVE)),
            (42.5, Act.BLUETOOTH_LIVES),
            *((back, act) for act in (Act.USE_BLUETOOTH, Act.MOVE)),
        ],
        key=lambda it: it[0],
    )
    scans = [at for at, act in found if act is Act.DISCOVER]
    assert [at for at in scans if at <= 16.0] == [2.0 * n for n in range(1, 9)]
    assert [at for at in scans if at > 16.0] == [
        moved + 5.0 * n for n in range(1, round((back - moved) / 5) + 1)
    ]


def test_the_first_discovery_is_not_before_its_time() -> None:
    """Of a signal that is weak at the beginning, and strong when WiFi is moved to."""
    returns = Rssi(((0.0, -92.0), (1.0, -92.0), (2.0, -80.0)))
    found = [(it.at_s, it.act) for it in manager.plan(returns, "h3", PERIODS, 60.0)]
    moves = [at for at, act in found if act is Act.MOVE]
    assert moves == [2.0, 7.0]
    assert [at for at, act in found if act is Act.DISCOVER] == moves


class Clock:
    """In the place of `time`: it moves only while somebody sleeps."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("policy", ["h1", "h3", ""])
def test_the_manager_says_each_act_when_it_is_due(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, clock, said = tmp_path / "walk", Clock(), []
    rssi.write(trace, AWAY)
    assert rssi.read(trace) == AWAY
    monkeypatch.setattr(manager, "time", clock)
    monkeypatch.setattr(
        manager, "print", lambda act, flush: said.append((Act(act), clock.now)), raising=False
    )
    began = clock.now + 1.0
    _, module, *words = manager.words(trace, 60.0, policy, PERIODS, 0.5, began)
    manager.main(words)
    assert module == manager.__name__
    wanted = manager.plan(AWAY, policy, PERIODS, 60.0) if policy else manager.walked(AWAY)
    assert said == [(it.act, pytest.approx(began + it.at_s)) for it in wanted]


def test_the_manager_is_a_process_that_says_at_once_what_it_does(tmp_path: Path) -> None:
    """The first act is read though the next is due in an hour, and not before its time."""
    trace = tmp_path / "walk"
    rssi.write(trace, Rssi(((0.1, -80.0), (0.2, -100.0))))
    began = time.monotonic()
    words = manager.words(trace, 1e4, "h1", Periods(p1=3600.0), 0.1, began)
    environ = {name: it for name, it in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environ, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            assert Act(process.stdout.readline().decode().strip()) is Act.BLUETOOTH_DIES
            assert time.monotonic() - began >= 0.175
        finally:
            process.kill()


def test_a_manager_without_a_signal_says_so(tmp_path: Path) -> None:
    trace = tmp_path / "walk"
    trace.write_text("2 -80\n1 -90\n")
    for path, says in ((trace, "goes back in time: 1 s behind 2 s"), (tmp_path / "no", "No such")):
        told = subprocess.run(
            [sys.executable, "-m", "topologies.manager", path, "5"],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        assert told.returncode == 1
        assert says in told.stderr.decode()


def test_a_signal_may_be_a_file(tmp_path: Path) -> None:
    """In place of the walk; what is wrong in it is said before anything runs."""
    own = handover.Handover.parameters
    trace = tmp_path / "walk"
    rssi.write(trace, AWAY)
    params = parameters.complete(own, {"preset": "bt-wifi", "rssi": str(trace)})
    assert handover.signal_of(params, PERIODS) == AWAY
    assert AWAY.turns() == 40.0
    trace.write_text("2 -80\n1 -90\n")
    with pytest.raises(ParameterError, match="goes back in time"):
        parameters.complete(own, {"preset": "bt-wifi", "rssi": str(trace)})
    with pytest.raises(ParameterError, match="No such file"):
        parameters.complete(own, {"preset": "bt-wifi", "rssi": str(tmp_path / "none")})
    walked = parameters.complete(own, {"preset": "bt-wifi", "slope": 1.0})
    assert handover.signal_of(walked, PERIODS) == handover.walk_of(1.0, PERIODS)


def test_a_short_absence_is_not_noticed() -> None:
    """Dead from 17.5 to 42.5 s."""
    acts = {it.act for it in manager.plan(AWAY, "h1", Periods(p1=25.1), 99.0)}
    assert acts == {Act.BLUETOOTH_DIES, Act.BLUETOOTH_LIVES}
    assert len(manager.plan(AWAY, "h1", Periods(p1=24.9), 99.0)) > 2


def test_who_stays_is_left_alone() -> None:
    near = Rssi(((0.0, -60.0),))
    assert manager.plan(near, "h1", PERIODS, 60.0) == []
    assert {it.act for it in manager.plan(near, "h2", PERIODS, 60.0)} == set(SCANS)
    assert manager.silence_s(near, "h2", PERIODS) == 0.0
    with pytest.raises(ParameterError, match="none of h1, h2, h3"):
        manager.plan(near, "h4", PERIODS, 60.0)


def test_the_closed_forms() -> None:
    assert manager.silence_s(AWAY, "h1", Periods()) == pytest.approx(43.5)  # 43.6 with its parts
    assert handover.closed_form("h1", 1.0) == pytest.approx(43.5)
    # Weak at 8 s, dead at 18 s: ten of P2 and P3's 16.8 s pass while Bluetooth still works.
    assert handover.closed_form("h2", 0.5) == pytest.approx(6.8)
    assert handover.closed_form("h2", 0.25) == 0.0
    # Dead at 5.4 s, seen to be weak at 6 s only.
    assert handover.closed_form("h2", 5.0) == pytest.approx(16.8 + 0.6)
    assert all(handover.closed_form("h3", it) <= 0.6 + 1e-9 for it in handover.SLOPES)


def test_a_chunk_says_its_number_and_is_compared() -> None:
    data = chunk(7, 41)
    assert len(data) == SIZE and number_of(7, data) == 41
    wrong = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(WrongByte):
        number_of(7, wrong)
    with pytest.raises(WrongByte):
        number_of(8, data)


def test_the_longest_gap_is_within_two_times() -> None:
    assert longest_gap([1.0, 1.2, 3.0, 3.1], 0.5, 3.5) == pytest.approx(1.8)
    assert longest_gap([1.0, 1.2], 1.1, 5.0) == pytest.approx(3.8), "cut off at the end"


@pytest.mark.parametrize("seed", range(3))
def test_no_chunk_twice_and_none_missing_however_it_is_moved(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one address to another, to none, in the middle of dialling, and to one that is not
    there."""
    monkeypatch.setattr(server, "EVERY_S", 0.004)
    port = 20_000 + seed + random.Random(str(tmp_path)).randrange(10_000)
    threading.Thread(target=server.serve, args=("127.0.0.1", port, 5), daemon=True).start()
    told, over = tmp_path / "told", tmp_path / "over"
    client.tell(told, "127.0.0.1", move=False)
    application = client.Application(("127.0.0.1", port), 5, told)
    dice = random.Random(seed)

    def is_at(address: str) -> bool:
        now = application._now
        return now is not None and now.address == address

    def moves() -> None:
        try:
            for _ in range(60):
                address = dice.choice(["127.0.0.2", "127.0.0.3", "127.0.0.4", "192.0.2.9", None])
                client.tell(told, address, move=dice.random() < 0.8)
                time.sleep(dice.uniform(0, 0.05))
            client.tell(told, "127.0.0.5", move=True)
            until("a chunk at the last address", lambda: is_at("127.0.0.5"))
            before = len(application.came)
            until("it to go on there", lambda: len(application.came) > max(100, before + 20))
        finally:
            over.touch()

    with ThreadPoolExecutor(1) as beside:
        moved = beside.submit(moves)
        application.run(over)
        moved.result()
    # That each is the next one is what `came` is made of; a chunk that is missing raises.
    assert application.dialled > 5
    assert application.came == sorted(application.came)


def test_who_does_not_answer_is_dialled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network of a new connection may die when the chunks were asked for, and say nothing."""
    monkeypatch.setattr(client, "DIALS_S", 0.2)
    monkeypatch.setattr(server, "EVERY_S", 0.004)
    told, over = tmp_path / "told", tmp_path / "over"
    client.tell(told, "127.0.0.1", move=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_the_second() -> None:
            silent, _ = listening.accept()
            with silent:
                assert silent.recv(64)
                listening.settimeout(5.0)
                try:
                    second, _ = listening.accept()
                    threading.Thread(target=server.chunks, args=(second, 5), daemon=True).start()
                    until("chunks", lambda: len(application.came) > 10)
                finally:
                    over.touch()

        application = client.Application(listening.getsockname(), 5, told)
        answering = threading.Thread(target=answer_the_second)
        answering.start()
        application.run(over)
        answering.join()
    assert len(application.came) > 10
    assert (application.dialled, application.failed) == (2, 1)


PERIODS_SHORT = {"p1": 1.5, "p2": 1.0, "p3": 0.5, "p4": 0.5, "back": 0.5}
SHORT = {**PERIODS_SHORT, "slope": 2.0}
# On a busy machine; how short it is on a quiet one is what the experiment measures. Bluetooth is
# dead for 6.7 s, so who did not leave it has a longer one.
MOST_S = {"h3": 1.5, "lp": 6.0}


@pytest.mark.slow  # walks there and back, 22 s each
@pytest.mark.timeout(300)  # several times on a machine that is late
@pytest.mark.parametrize("policy", ["h1", "h2", "h3", "lp"])
def test_a_handover_in_a_lab(
    labs: Path, tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """h1's silence is the sum of its periods; of h2's a part passes before Bluetooth is dead; over
    lp the application dials once."""
    monkeypatch.setattr(handover, "LEAVES_S", 2.0)
    monkeypatch.setattr(handover, "STAYS_S", 2.0)
    chosen = {"preset": "bt-wifi", "wan_rtt_ms": 0.0, "link": "linkem", "policy": policy}
    way = {"pipes": 2} if policy == "lp" else {"way": "direct"}
    way |= {"p2": 3.0} if policy == "h2" else {}  # beyond the time that it has
    experiment = handover.Handover()
    params = parameters.complete(experiment.parameters, {**chosen, **SHORT, **way})
    words = PATHS if policy == "lp" else ()
    folders = (tmp_path / f"run{n}" for n in itertools.count())

    def walk() -> None:
        with Labs() as made, live(made, next(folders), params, more=More(lp=words)) as run:
            found = experiment.measure(run)
        try:
            goes_as_planned(policy, found)
        except AssertionError as wrong:
            raise Wrong(str(wrong)) from wrong

    again_if_late(list, f"a handover by {policy}", walk)


def goes_as_planned(policy: str, found: dict[str, Any]) -> None:
    if policy == "h1":
        assert found["away_gap_s"] == pytest.approx(4.0, abs=0.5)  # and what is left of a chunk
        assert found["back_gap_s"] == pytest.approx(0.7, abs=0.4)
    elif policy == "h2":
        form = handover.closed_form("h2", 2.0, Periods(**{**PERIODS_SHORT, "p2": 3.0}))
        assert form == pytest.approx(2.0), "weak at 3 s, seen at 4, dead at 5.5"
        assert found["away_gap_s"] == pytest.approx(form + 0.2, abs=0.4)
        assert found["back_gap_s"] < MOST_S["h3"]
    else:
        assert found["longest_gap_s"] < MOST_S[policy]
    assert found["dialled"] == (1 if policy == "lp" else 3)
    assert found["again"] <= 4, "two moves, and each left the former connection at once"


def test_pipes_go_with_no_manager(labs: Path, tmp_path: Path) -> None:
    experiment = handover.Handover()
    chosen = {"preset": "bt-wifi", "link": "linkem", "way": "direct", "policy": "lp"}
    params = parameters.complete(experiment.parameters, chosen)
    with Labs() as made, live(made, tmp_path / "run", params) as run:
        with pytest.raises(RunFailed, match="policy lp: lp goes with pipes"):
            experiment.measure(run)
