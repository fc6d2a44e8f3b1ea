# SPDX-License-Identifier: MIT
"""SMT over two paths that are alike."""

from experiments.workloads.smt.experiment import (
    QUICK,
    SmtTwo,
    among,
    bound,
    grid,
    plots,
    published,
    row_of,
    work_conserving,
)
from experiments.workloads.smt.policies import POLICIES
from topologies.parameter import Params

NUMBER = 1
SECOND: Params = {}
LEAST_ALIKE = 0.9


class SmtTwo1(SmtTwo):
    name = row_of(NUMBER)
    title = "Messages over two paths, alike"
    question = "What does the choice of a path cost where there is nothing to choose?"
    grids = (grid(SECOND, tuple(POLICIES)),)
    quick_grids = (grid(SECOND, QUICK),)
    claims = (
        published(NUMBER, "in most distributions", "same", paper=1.0),
        published(NUMBER, "mean of all distributions", "less", **among("geomean")),
        bound(NUMBER, "in every distribution", "least", LEAST_ALIKE),
        work_conserving(name),
    )
    figures = plots(NUMBER)
