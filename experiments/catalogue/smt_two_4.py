# SPDX-License-Identifier: MIT
"""SMT over two paths, of which one has a tenth of the rate."""

from experiments.workloads.smt.experiment import (
    QUICK,
    SmtTwo,
    grid,
    plots,
    published,
    row_of,
    work_conserving,
)
from experiments.workloads.smt.policies import POLICIES
from topologies.parameter import Params

NUMBER = 4
SECOND: Params = {"second_mbps": 10.0}
SMALL = (2, 9, 10, 14)  # without any large message


class SmtTwo4(SmtTwo):
    name = row_of(NUMBER)
    title = "Messages over two paths, 100 and 10 Mbit/s"
    question = "What does a slow path add if the sender knows how slow it is?"
    grids = (grid(SECOND, tuple(POLICIES)),)
    quick_grids = (grid(SECOND, QUICK),)
    claims = (
        published(NUMBER, "in most distributions", "more"),
        *(published(NUMBER, f"distribution {it}", "less", {"distribution": it}) for it in SMALL),
        work_conserving(name),
    )
    figures = plots(NUMBER)
