# SPDX-License-Identifier: MIT
"""`--watch` of `tm3lab run` and `tm3lab up`: the lab as it is, and its last mile turned."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from base.pressure import OwnTime
from base.shell import until
from experiments.labs import Labs
from experiments.watch.link import CHANGES, Links
from tests.conftest import why_no_namespace
from tests.experiments.runner_lab import SWEEP, configuration
from tests.experiments.watch_server import ANY, Events, asked
from topologies.parameter import ParameterError
from topologies.programs import built

pytestmark = [
    pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace())),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun for linkem"),
]
URL = re.compile(r"http://127\.0\.0\.1:\d+/")


class Elsewhere:
    """A server that another process has, as far as those who ask need it."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        assert place.hostname and place.port
        self.server_address = (place.hostname, place.port)
        self.address = place.netloc

    def turn(self, parameter: str, value: Any) -> tuple[int, str]:
        change = json.dumps({"mile": "mile", "parameter": parameter, "value": value})
        origin = f"http://{self.address}"
        return asked(self, "/link", "POST", change, Origin=origin)[:2]  # type: ignore[arg-type]

    def is_gone(self) -> bool:
        try:
            socket.create_connection(self.server_address, 1).close()
        except OSError:
            return True
        return False


@contextmanager
def command(log: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    with log.open("w") as said:
        process = subprocess.Popen(
            [built("tm3lab"), *words],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def told(log: Path, seconds: float = 60.0) -> Elsewhere:
    found = until("the page's address", lambda: URL.search(log.read_text()), seconds)
    return Elsewhere(found[0])


def test_a_sweep_while_it_runs(tmp_path: Path) -> None:
    log, words = tmp_path / "log", ("--reps", "2", "--watch", "--port", "0")
    with command(log, "run", "download", *SWEEP, *words, "--results", str(tmp_path)) as process:
        page = told(log)
        until("the page to answer", lambda: not page.is_gone())
        events = Events(page)  # type: ignore[arg-type]
        assert events.until("folder")["live"]
        assert events.until("sweep")["total"] == 4
        run = events.until("run")["run"]
        clock = OwnTime()
        first = events.until("rp")[0]
        assert (first["type"], first["program"]) == ("start", "rp")
        others_s = clock.went_s() - clock.passed_s()
        assert time.time() - first["time"] < 5 + others_s
        ended = events.until("ended")["runs"]
        assert [it["outcome"] for it in ended] == ["ok"] * len(ended)
        assert run.startswith("00")
        assert events.until("run")["run"] != run, "the next one"
        assert process.wait(60) == 0, log.read_text()
    assert page.is_gone()


@pytest.mark.parametrize("words", [("run", "download", *SWEEP), ("up", "wired")])
def test_a_port_in_use_is_known_before_anything_begins(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    more = ["--results", str(tmp_path)] if words[0] == "run" else []
    with socket.create_server(ANY) as taken:
        place = ["--watch", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(
            [built("tm3lab"), *words, *more, *place], capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("is in use: --port names another one")
    assert not list(tmp_path.iterdir())


def test_the_last_mile_is_turned_by_the_page(tmp_path: Path) -> None:
    log = tmp_path / "log"
    where = ("wired", "--pipes", "2", "--rtt-ms", "20", "--watch", "--port", "0")
    with command(log, "up", *where) as process:
        page = told(log)
        events = Events(page)  # type: ignore[arg-type]
        assert events.until("folder")["link"]
        assert events.until("link")["miles"]["mile"]["rtt_ms"] == 20
        status, said = page.turn("rtt_ms", 123)
        assert status == 200, said
        assert json.loads(said)["miles"]["mile"]["rtt_ms"] == 123

        def trip() -> bool:
            return any(it["type"] == "pipe" and it["rttmin_ms"] > 15 for it in events.until("rp"))

        assert trip(), "the pipes are told of, too"
        for parameter, value in (("rtt_ms", -1), ("rtt_ms", "5"), ("mtu", 900), ("loss_up", 2)):
            status, said = page.turn(parameter, value)
            assert status == 400
            assert len(said.splitlines()) == 1
        assert process.stdin
        process.stdin.write("exit\n")
        process.stdin.close()
        assert process.wait(60) == 0, log.read_text()
    assert page.is_gone()


def round_trip_ms(labs: Labs) -> float:
    assert labs.lab is not None
    out = labs.lab.client.inside("ping", "-q", "-c", "3", "-i", "0.1", labs.lab.rp.IP())
    return float(re.search(r"= ([\d.]+)/", out)[1])  # type: ignore[index]


def test_what_is_turned_is_in_force() -> None:
    """Told by linkem itself, and felt by packets; nothing that is wrong changes anything."""
    with Labs() as labs:
        links = Links(labs.get(configuration(), 1))
        assert 10 <= round_trip_ms(labs) < 25
        links.change("mile", "rtt_ms", 80)
        assert 80 <= round_trip_ms(labs) < 95
        for name, value in (("down_mbps", 3), ("loss_down", 0.05), ("queue_up_ms", 40)):
            mile = links.change("mile", name, value)["miles"]["mile"]
            assert mile[name] == value
        assert labs.lab
        there = labs.lab.links["mile"].ask("get")  # type: ignore[attr-defined]
        assert (there["ba"]["rate_mbps"], there["ba"]["loss"]) == (3, "bernoulli:0.05")
        before = {it: mile[it] for it in CHANGES}
        for wrong in (
            *(("other", "rtt_ms", 5), ("mile", "mtu", 900), ("mile", "rtt_ms", -1)),
            *(("mile", "rtt_ms", float("nan")), ("mile", "rtt_ms", True), ("mile", "loss_up", "1")),
            *(("mile", "down_mbps", None), ("mile", "down_mbps", 0)),
        ):
            with pytest.raises(ParameterError):
                links.change(*wrong)
        now = links.told()["miles"]["mile"]
        assert {it: now[it] for it in CHANGES} == before
        assert now["counted"]["down"]["out_packets"] >= 3
        assert now["counted"]["down"]["queue"]["queue_bytes"] >= 0


def test_a_rate_that_a_trace_has_stays_with_it(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("1\n2\n")
    with Labs() as labs:
        links = Links(labs.get(configuration(trace_down=str(trace)), 1))
        assert links.told()["miles"]["mile"]["fixed"] == {"down_mbps": "a trace has the rate"}
        with pytest.raises(ParameterError, match="a trace has the rate"):
            links.change("mile", "down_mbps", 5)
        links.change("mile", "up_mbps", 5)
