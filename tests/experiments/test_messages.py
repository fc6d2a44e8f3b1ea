# SPDX-License-Identifier: MIT
"""Which accounts of SMT's two programs make no run: something late, a lost connection."""

from typing import Any

import pytest

from experiments import machine
from experiments.catalogue import find
from experiments.failure import RunFailed
from experiments.workloads import messages
from experiments.workloads.smt.experiment import measures

Account = dict[str, Any]


def account(client: Account | None = None, server: Account | None = None) -> Account:
    end = {"late": 0, "cpu_s": 1.0}
    both = {"lost": [], "seconds": 4.0, "server": {**end, **(server or {})}}
    return {**end, **both, **(client or {})}


@pytest.mark.parametrize(
    ("client", "server", "says"),
    [
        ({"late": 1}, {}, "the client delivered 1 messages later than it could"),
        ({}, {"late": 3}, "the server delivered 3 messages later than it could"),
        ({}, {"late": None}, "the server delivered None messages later than it could"),
        ({"lost": ["a: silent", "b: reset"]}, {}, "a connection was lost: a: silent; b: reset"),
    ],
)
def test_what_must_not_pass(client: Account, server: Account, says: str) -> None:
    messages.check(account())
    with pytest.raises(RunFailed, match=says):
        messages.check(account(client, server))


def test_which_end_was_too_busy() -> None:
    found = account({"cpu_s": 2.81}, {"cpu_s": 2.79})
    ends = messages.ends(found)
    told = [machine.too_slow(name, it["cpu_s"], 4.0) for name, it in ends]
    assert told == ["machine too slow: the client took 0.70 of a core", ""]


def test_measures() -> None:
    line = {"path": "a", "messages": 1, "bytes": 300}
    told = {"messages_per_s": 9.0, "mbps": 1.0, "mean_ms": 60.0, "p99_ms": 90.0}
    found = measures({**account(), **told, "lines": [line, {**line, "bytes": 100}]})
    for name in ("smt-two-1", "smt-two-5"):
        assert {it.name for it in find(name).metrics} == set(found)
    assert (found["second_share"], found["client_cpu"], found["late"]) == (0.25, 0.25, 0)
