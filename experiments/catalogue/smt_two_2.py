# SPDX-License-Identifier: MIT
"""SMT over two paths, of which one has no delay."""

from experiments.workloads.smt.experiment import (
    NOTES,
    QUICK,
    SmtTwo,
    bound,
    grid,
    plots,
    published,
    row_of,
    work_conserving,
)
from experiments.workloads.smt.policies import POLICIES
from topologies.parameter import Params

NUMBER = 2
SECOND: Params = {"second_rtt_ms": 0.0}
LARGE = (0, 6, 7, 11, 13)  # where large messages dominate
LEAST = 0.95


class SmtTwo2(SmtTwo):
    name = row_of(NUMBER)
    title = "Messages over two paths, 50 and 0 ms"
    question = "How many more messages come if the near path takes what it can?"
    grids = (grid(SECOND, tuple(POLICIES)),)
    quick_grids = (grid(SECOND, QUICK),)
    claims = (
        published(NUMBER, "in most distributions", "more"),
        *(
            published(NUMBER, f"distribution {it}", "same", {"distribution": it}, paper=1.0)
            for it in LARGE
        ),
        bound(NUMBER, "in 8 of 15 distributions", "median", 1.0),
        bound(NUMBER, "in every distribution", "least", LEAST),
        work_conserving(name),
    )
    figures = plots(NUMBER)
    notes = (
        *NOTES,
        "Half a round trip, as published, has half of the queue of the network, which is all on "
        "the way there: where the number of messages is the limit, the near path is filled until "
        "its queue is twice as long as it should be. With messages of 16 KB (distribution 5) "
        "`estimate` had 0.78 of the messages a second of an even spread, and `one-way`, which "
        "counts the queue whole, 0.97; with distribution 8 0.79 and 0.88, with 12 0.93 and 0.89 "
        "(1 December 2026, five runs of each, alone on the machine).",
    )
