# SPDX-License-Identifier: MIT
"""Beds for tests of workloads and of the catalogue, with a link that is quick."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments import parameters
from experiments.bed import Bed, laid
from experiments.stand import Stand
from topologies.parameter import Params

QUICK = {"pipes": 2, "rtt_ms": 10.0, "mbps": 20.0, "link": "linkem"}


def configuration(own: Any = (), **chosen: Any) -> Params:
    return parameters.complete(own, {**QUICK, **chosen})


@contextmanager
def bed(
    stand: Stand, folder: Path, params: Params, *, limit_s: float = 60.0, seed: int = 1
) -> Iterator[Bed]:
    folder.mkdir(exist_ok=True)
    with laid(stand, params, seed, folder, limit_s, keep_pcaps=False) as made:
        yield made
