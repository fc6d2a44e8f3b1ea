# SPDX-License-Identifier: MIT
"""Runs for tests of workloads and of the catalogue, with a link that is quick."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments import parameters
from experiments.labs import Labs
from experiments.live_run import LiveRun
from experiments.prepare import More, prepared
from topologies.parameter import Params

NOTHING_MORE = More()
QUICK = {"pipes": 2, "rtt_ms": 10.0, "mbps": 20.0, "link": "linkem"}


def configuration(own: Any = (), **chosen: Any) -> Params:
    return parameters.complete(own, {**QUICK, **chosen})


@contextmanager
def live(
    labs: Labs,
    folder: Path,
    params: Params,
    *,
    limit_s: float = 60.0,
    seed: int = 1,
    more: More = NOTHING_MORE,
) -> Iterator[LiveRun]:
    folder.mkdir(exist_ok=True)
    with prepared(labs, params, seed, folder, limit_s, keep_pcaps=False, more=more) as made:
        yield made
