# SPDX-License-Identifier: MIT
"""What the extension costs: what is counted between two moments, and how it is decided."""

import random
import time
from pathlib import Path
from typing import Any

import pytest

from experiments import sweep
from experiments.catalogue import find
from experiments.report import rows
from experiments.report.data import Results
from experiments.report.runs import Run
from experiments.workloads import account
from topologies.parameter import Params


def sample(at: float, pipe: int, sent: int) -> dict[str, Any]:
    told = {"type": "pipe", "session": 1, "pipe": pipe, "time": at}
    return told | {"tx_bytes": sent, "tx_ack_bytes": sent // 50, "tx_acks": sent // 5000}


def test_counters_grow_between_two_moments() -> None:
    """A pipe that came meanwhile counts from nothing; one that went stays as it was."""
    ahead = time.time() - time.monotonic()
    records = [{"type": "start", "time": ahead}]
    records += [sample(ahead + n / 10 + 0.01, 0, 10_000 * n) for n in range(100)]
    records += [sample(ahead + n / 10 + 0.01, 1, 5_000 * (n - 30)) for n in range(30, 100)]
    records += [sample(ahead + n / 10 + 0.01, 2, 5_000 * n) for n in range(30)]
    found = account.grown(records, 2.05, 5.05)
    first, second, third = 300_000, 100_000, 45_000
    assert found["tx_bytes"] == first + second + third
    assert found["tx_ack_bytes"] == found["tx_bytes"] // 50
    assert account.grown(records, 20.0, 30.0)["tx_bytes"] == 0


def results_of(name: str, reps: int, **measured: Any) -> Results:
    """`measured`: by metric, what a run has of the extension, and what of the baseline."""
    experiment = find(name)
    runs = []
    for number, params in enumerate(sweep.configurations(experiment, {})):
        for seed in range(reps):
            luck = random.Random(seed)
            own = 0 if params["extend"] == "auto" else 1
            measures = {metric: both[own](params, luck) for metric, both in measured.items()}
            runs.append(Run(f"{number}-{seed}", params, seed, seed, "ok", measures))
    return Results(Path("nowhere"), {"format": 1}, tuple(runs), 0, experiment, True)


def rate(factor: float) -> Any:
    return lambda params, luck: factor * luck.uniform(80, 90)


def more_ms(more: float) -> Any:
    """Runs differ more than what is looked for; a key costs as much again."""
    return lambda params, luck: luck.uniform(50, 90) + more * (2 if params["key"] else 1)


@pytest.mark.parametrize(
    ("kept", "more", "share", "said"), [(0.99, 0.5, 0.01, "yes"), (0.8, 4.0, 0.03, "no")]
)
def test_costs_within_their_bounds_and_beyond(
    kept: float, more: float, share: float, said: str
) -> None:
    def acks(params: Params, luck: random.Random) -> float | None:
        return share if params["load"] == "both-ways" else None

    found = rows.rows(
        results_of(
            "extension-costs",
            10,
            down_mbps=(rate(kept), rate(1.0)),
            first_mbps=(rate(kept), rate(1.0)),
            object_ms=(more_ms(more), more_ms(0.0)),
            ack_share=(acks, lambda params, luck: 0.0),
        )
    )
    assert {row.verdict for row in found} == {said}, [(it.claim.says, it.verdict) for it in found]
    assert found[-1].got.median == share, "of the extension alone"


@pytest.mark.parametrize(("tail", "said"), [(0.5, "yes"), (1.0, "no")])
def test_short_files_are_held_against_the_baselines_slow_ones(tail: float, said: str) -> None:
    """Most runs are alike; some lose what only a timer repairs."""

    def took(factor: float) -> Any:
        def seconds(params: Params, luck: random.Random) -> float:
            lost = luck.random() < 0.3
            return luck.uniform(0.30, 0.32) + factor * 1.2 * lost

        return seconds

    results = results_of("extension-lossy", 40, completion_s=(took(tail), took(1.0)))
    found = rows.rows(results)
    assert [row.verdict for row in found] == [said, "yes"] * 2, [row.got for row in found]
