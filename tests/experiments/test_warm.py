# SPDX-License-Identifier: MIT
"""What ss tells of pipes that are warm, and pipes that then rested."""

import argparse
from typing import Any

import pytest

from experiments import catalogue, cli_run, parameters, sweep
from experiments.report import words
from experiments.warm import rest_ms, windows
from topologies.parameter import ParameterError

TOLD = (
    "0 0 10.0.2.2:6010 10.0.1.1:4711 cubic wscale:9,9 rto:254 rtt:53.1/0.9 mss:1448 cwnd:10"
    " ssthresh:7 bytes_sent:9000 lastsnd:12 lastrcv:3 pacing_rate 3Mbps\n"
    "0 0 10.0.2.2:6010 10.0.1.1:4712 cubic wscale:9,9 rto:260 rtt:54/1 mss:1448 cwnd:12"
    " bytes_sent:9000 lastrcv:3 pacing_rate 3Mbps\n"
)


def test_a_pipe_that_sent_just_now_is_one_too() -> None:
    """Over the extension there is control to send."""
    found = windows(TOLD)
    assert found == {
        "cwnd": [10, 12], "ssthresh": [7], "rtt": [53.1, 54], "rto": [254, 260],
        "lastsnd": [12, 0],
    }  # fmt: skip


def test_the_longer_rest_counts() -> None:
    """Of a pipe that sent a PING in the middle of its rest, and of one that did not."""
    assert rest_ms(3000, 3001) == 3000
    assert rest_ms(10, 15_010) == 15_000
    assert rest_ms(12, 12) == 12


def test_pipes_are_fresh_warm_or_idle() -> None:
    def state(**chosen: Any) -> tuple[Any, Any]:
        full = parameters.complete((), chosen)
        return full["warm"], full["idle_s"]

    assert state() == (False, None), "only what was warm can rest"
    assert state(warm=True) == (True, 0.0)
    assert state(warm=True, idle_s=3) == (True, 3.0)
    assert state(way="direct", idle_s=3) == (None, None)
    with pytest.raises(ParameterError, match=r"idle_s: goes with warm yes only"):
        fresh = [{"idle_s": 3.0}]
        parameters.check_used((), fresh, [parameters.complete((), fresh[0])])


def test_reports_tell_the_three_apart() -> None:
    states = [{"warm": False}, {"warm": True}, {"warm": True, "idle_s": 3}]
    full = [parameters.complete((), it) for it in states]
    names = sweep.varying(full)
    assert names == ["warm", "idle_s"]
    labels = [words.label(it, names).replace("\N{NO-BREAK SPACE}", " ") for it in full]
    assert labels == ["fresh pipes", "warm pipes, just used", "warm pipes, idle for 3 s"]


def test_a_run_has_time_to_rest() -> None:
    """The limit of a run is what it measures, and the rest before."""
    given = argparse.Namespace(reps=1, quick=False, time_limit=None, seed=1, sessions=1, apart=60.0)
    told = {"warm": "yes", "pipes": "1", "size": "50KB", "preset": "wired", "way": "pipes"}
    download = catalogue.find("download")
    limits = [
        cli_run.plan_of(download, given, {**told, "idle_s": rest}).limit_s for rest in ("0", "500")
    ]
    assert limits[1] == limits[0] + 500
