# SPDX-License-Identifier: MIT
"""Table 7: the same over LTE, whose network has deep queues of its own."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue import early
from experiments.catalogue.sender_blocking import (
    MB,
    Row,
    SenderBlocking,
    blocked,
    claims_of,
    grids_of,
)
from experiments.model import Experiment, Figure
from topologies.parameter import Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

TABLE = (
    Row(1, None, None, 0.89, 0.17),
    Row(1, 4 * MB, None, 1.06, 0.19),
    Row(8, None, None, 1.12, 0.34),
    Row(8, MB // 2, None, 1.46, 0.37),
)
LIMITED = (Row(1, 4 * MB, None, 3.41, 0.08), Row(8, MB // 2, None, 3.77, 0.10))
NETWORK: Params = {"preset": "lte", "bottleneck": "network"}
SENDER: Params = {"preset": "lte", "bottleneck": "sender"}


class SenderBlockingLte(Experiment):
    name = "sender-blocking-lte"
    ways = ("pipes",)
    title = "What waits in the sender, and what in the network"
    question = "How much of the waiting is left where the network itself queues half a second?"
    metrics = SenderBlocking.metrics
    grids = (*grids_of(TABLE, NETWORK), *grids_of(LIMITED, SENDER))
    reps = 10
    quick_reps = 5
    run_seconds = 5.0
    claims = (
        *claims_of("sender-blocking-lte", "Table 7", TABLE, NETWORK),
        *claims_of("sender-blocking-lte", "Table 7, limited", LIMITED, SENDER, ", limited"),
    )
    figures = (
        Figure(
            name="objects",
            title="A 4 KB object beside bulk, LTE",
            kind="against",
            y="object_p50_s",
            x="pipe_sndbuf",
            hue="binding",
            facet="bottleneck",
            log=True,
        ),
    )
    notes = (
        "Published rows whose background was limited to 10 Mbit/s by the sender are answered with "
        "the rate limit of the last mile in the sender's own queue, so that the network queues "
        "nothing.",
        early.NOTE,
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        return blocked(run)
