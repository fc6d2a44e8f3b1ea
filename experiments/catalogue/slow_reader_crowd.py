# SPDX-License-Identifier: MIT
"""The same beside ten thousand applications that never read."""

from typing import TYPE_CHECKING, Any

from experiments.catalogue.slow_reader import FAST, SlowReader, claims_of, grid
from experiments.model import Figure
from experiments.workloads import crowd

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

MOST = 10_000


class SlowReaderCrowd(SlowReader):
    name = "slow-reader-crowd"
    title = "A download beside ten thousand applications that never read"
    question = "Do very many readers that take nothing hold up anybody but themselves?"
    grids = (grid("nothing", (MOST,), FAST),)
    reps = 5
    quick_grids = ()
    quick_reps = 5
    in_all_quick = False
    run_seconds = 90.0
    fills_s = 240.0
    claims = claims_of("nothing", MOST, FAST, row="slow-reader-crowd")
    figures = (
        Figure(
            name="rate",
            title="A download beside ten thousand applications that never read",
            kind="against",
            y="rate_kept",
            x="extend",
        ),
        Figure(
            name="memory",
            title="Memory of lp",
            kind="against",
            y="lp_mb",
            x="extend",
        ),
        Figure(
            name="series",
            title="The download before and beside readers",
            kind="series",
            y="series_download_mbps",
        ),
    )
    notes = (
        "As `slow-reader`, with ten thousand readers that take nothing, over a link of 200 Mbit/s "
        "that emulates nothing. They come a thousand a second: rp has at most 1,024 connects under "
        "way for one session.",
        "While ten thousand new connections get their first bytes, the download gets next to "
        "nothing: who had least comes first. That is the longest silence, and it lasts until their "
        "buffers and lp's memory for them are full. The rate is measured after it.",
        "All TCP memory of a machine is one budget. So that it is not what is measured, the "
        "buffers of the server, of rp towards it, of lp towards applications and of the readers "
        "are small, 16 or 32 KB each, for all that come when the download has been alone: its own "
        "have grown by then. Programs may have as many descriptors as they need.",
        "Five repetitions, the fewest that an interval can be told of: a run takes a minute and a "
        "half. The bounds are the laboratory's own: 0.95 of the rate; for lp 256 MiB and 4 KiB a "
        "connection, for rp 32 MiB and 4 KiB a connection, and a tenth more.",
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        crowd.make_room(run, int(run.params["readers"]))  # type: ignore[arg-type]
        small = crowd.small_buffers(run.lab)
        return self.observe(run, small, rcvbuf=crowd.RCVBUF, pause_s=0.001)
