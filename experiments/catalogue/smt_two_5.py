# SPDX-License-Identifier: MIT
"""SMT over two paths, of which one loses packets."""

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

NUMBER = 5
SECOND: Params = {"second_loss": 0.01}
MEAN = 1.5


class SmtTwo5(SmtTwo):
    name = row_of(NUMBER)
    title = "Messages over two paths, one with 1 % loss"
    question = "How much of what losses cost does the choice of a path avoid?"
    grids = (grid(SECOND, tuple(POLICIES)),)
    quick_grids = (grid(SECOND, QUICK),)
    claims = (
        published(NUMBER, "in every distribution", "more", **among("least")),
        published(NUMBER, "most of all distributions", "more", paper=2.0, **among("largest")),
        bound(NUMBER, "in 14 of 15 distributions", "second", 1.0),
        bound(NUMBER, "mean of all distributions", "geomean", MEAN),
        work_conserving(name),
    )
    figures = plots(NUMBER)
