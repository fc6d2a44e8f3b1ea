# SPDX-License-Identifier: MIT
"""What befalls one of two last miles in a lab, and what is made of the arrivals."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments import parameters
from experiments.catalogue import find
from experiments.catalogue.paths_failover import only, seen
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.prepare import wanted_by
from experiments.workloads import path_loss, traffic
from experiments.workloads.actors import Pause
from experiments.workloads.steady import Steady
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs

__all__ = ["labs"]

TWO: dict[str, Any] = {"preset": "wifi-lte", "mbps": None, "rtt_ms": None}


def arrivals(came: list[float]) -> dict[str, Any]:
    """100 KB in each tenth of a second in which something came."""
    bins = [0] * (int(max(came) * 10) + 1)
    for at in came:
        bins[int(at * 10)] = 100_000
    return {"began": 0.0, "came": came, "bins": bins}


def test_a_pause_and_the_rate_after_it() -> None:
    """Nothing from 5.0 to 5.6 s, then in every second tenth of a second."""
    came = [n / 10 + 0.01 for n in range(120) if n < 50 or (n > 55 and n % 2 == 0)]
    found = seen(arrivals(came), 5.0, 12.0)
    assert found["pause_s"] == pytest.approx(0.61)
    assert found["usual_s"] == pytest.approx(0.1)
    assert found["before_mbps"] == pytest.approx(8.0)
    assert found["after_mbps"] == pytest.approx(4.0, rel=0.02)
    assert len(found["series_arrived_mbps"]) == 121


def test_without_a_pause_the_rate_is_from_a_second_after_the_event_on() -> None:
    """However late the longest of the usual pauses is."""
    came = [n / 10 + 0.01 for n in range(119)] + [11.99]
    found = seen(arrivals(came), 5.0, 12.0)
    assert found["pause_s"] == pytest.approx(0.18)
    assert found["after_mbps"] == pytest.approx(8.0, rel=0.02)


def test_a_pause_until_the_end_leaves_no_rate() -> None:
    found = seen(arrivals([n / 10 + 0.01 for n in range(50)]), 5.0, 12.0)
    assert (found["pause_s"], found["after_mbps"]) == (7.0, 0.0)


def test_the_options_of_each_case() -> None:
    experiment = find("paths-failover")

    def words(**chosen: Any) -> tuple[list[str], list[str]]:
        params = parameters.complete(experiment.parameters, {"preset": "wifi-lte", **chosen})
        more = wanted_by(experiment, params, Path())
        return list(more.lp), list(more.rp)

    paths = ["--path", "wifi,src=10.0.1.1,pipes=4", "--path", "lte,src=10.0.2.1,pipes=4"]
    assert words(event="wifi-down") == (paths, [])
    lp, rp = words(event="only-lte")
    assert lp == [*paths, "--path-policy", "one:lte"]
    assert rp == ["--path-policy", "one:1"], "rp knows paths by their numbers"
    assert words(event="wifi-silent", backup=True)[0][-1] == f"{paths[-1]},backup"
    assert only({"event": "only-wifi"}) == "wifi" and only({"event": "lte-down"}) is None


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


def routes(client: Any) -> list[str]:
    shown = client.inside("ip", "route", "show", "table", "all", "type", "unicast")
    near = client.inside("ip", "neighbour", "show", "nud", "permanent")
    return sorted(f"{shown}\n{near}".splitlines())


@pytest.mark.parametrize("mile", [0, 1])
def test_a_device_goes_down_and_is_as_before_afterwards(
    kept: Labs, tmp_path: Path, mile: int
) -> None:
    """By the kernel's word; and connections to the server are redirected whichever is down."""
    with live(kept, tmp_path / "run", configuration(**TWO)) as made:
        client, device = made.lab.client, f"client-eth{mile}"
        before = routes(client)
        with path_loss.applications_on_loopback(made.lab):
            with path_loss.device_down(made.lab, mile):
                assert "state DOWN" in client.inside("ip", "link", "show", device)
                told = client.inside("ip", "route", "get", "10.0.9.2")
                assert " dev lo " in told and " src 10.0.77.1 " in told
            ping = ("ping", "-c", "1", "-W", "5", "-I", f"10.0.{mile + 1}.1")
            client.inside(*ping, f"10.0.{mile + 1}.2")
        assert routes(client) == before


@pytest.mark.parametrize("mile", [0, 1])
def test_a_silent_last_mile_carries_nothing(kept: Labs, tmp_path: Path, mile: int) -> None:
    with live(kept, tmp_path / "run", configuration(**TWO)) as made:
        client, link = made.lab.client, list(made.lab.miles.values())[mile]
        ping = ("ping", "-c", "1", "-W", "1", "-I", f"10.0.{mile + 1}.1", f"10.0.{mile + 1}.2")
        with path_loss.silent(made.lab, mile):
            with pytest.raises(Exception, match="100% packet loss"):
                client.inside(*ping)
            other = 1 - mile
            client.inside("ping", "-c", "1", "-W", "5", f"10.0.{other + 1}.2")
        client.inside(*ping)
        assert (link.mile.loss_down, link.mile.loss_up) == (0.0, 0.0)


def test_a_path_alone_has_no_backup(kept: Labs, tmp_path: Path) -> None:
    """Over LTE as a backup Wi-Fi would be measured."""
    experiment = find("paths-failover")
    params = {"preset": "wifi-lte", "event": "only-lte", "backup": True}
    with live(kept, tmp_path / "run", parameters.complete(experiment.parameters, params)) as made:
        with pytest.raises(RunFailed, match="used alone has no backup"):
            experiment.measure(made)


@pytest.mark.parametrize("way", ["down", "up"])
def test_a_steady_transfer_tells_when_something_arrived(
    kept: Labs, tmp_path: Path, way: Any
) -> None:
    """At 8 Mbit/s, within the run, in the bins as in the moments."""
    with live(kept, tmp_path / "run", configuration(mbps=8.0, pipes=2)) as made:
        actors = {"it": Steady(port=traffic.PORT, way=way), "clock": Pause(seconds=1.5)}
        found = traffic.play(made, actors)["it"]
        began = made.went
    came = found["came"]
    assert came == sorted(came) and len(came) > 50
    assert came[0] >= began and came[-1] - began < 3.0
    assert 0.5e6 < sum(found["bins"]) < 8e6 / 8 * 2.0
