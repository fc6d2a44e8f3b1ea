# SPDX-License-Identifier: MIT
"""SMT over two paths with different round trips."""

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

NUMBER = 3
SECOND: Params = {"second_rtt_ms": 20.0}


class SmtTwo3(SmtTwo):
    name = row_of(NUMBER)
    title = "Messages over two paths, 50 and 20 ms"
    question = "Does the near path take more than it should?"
    grids = (grid(SECOND, tuple(POLICIES)),)
    quick_grids = (grid(SECOND, QUICK),)
    claims = (
        published(NUMBER, "in most distributions", "same", paper=1.0),
        work_conserving(name),
    )
    figures = plots(NUMBER)
