# SPDX-License-Identifier: MIT
"""A page loaded while the same user downloads something large."""

import time
from typing import TYPE_CHECKING, Any, ClassVar

from experiments.model import Metric
from experiments.workloads import rates, traffic
from experiments.workloads.actors import Bulk
from experiments.workloads.objects import SETTLE_S
from experiments.workloads.web.experiment import PageExperiment
from experiments.workloads.web.load import PARAMETERS
from experiments.workloads.web.pages import SITE_NAMES, page
from topologies.parameter import Parameter

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

TWELVE_SITES = (*SITE_NAMES[1::3], *SITE_NAMES[::15])
FIVE_SITES = TWELVE_SITES[:9:2]
RATES = {"full": 0.0, "3mbps": 3.0}
BESIDE = Parameter(
    "beside",
    "full",
    "text",
    "the download beside the page: none, as fast as it goes, at 3 Mbit/s",
    ("none", *RATES),
)


class BusyPage(PageExperiment):
    """`bulk_mbps` and `total_mbps` are of the time in which the page loads."""

    parameters = (*PARAMETERS, BESIDE)
    ways = ("pipes", "direct")
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("completion_s", "page load time", "s", matters=0.05),
        Metric("bulk_mbps", "goodput of the download meanwhile", "Mbit/s", "more", matters=0.02),
        Metric(
            "total_mbps", "goodput of page and download together", "Mbit/s", "more", matters=0.02
        ),
        Metric("page_bytes", "size of the page", "bytes", "neither"),
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        beside = str(run.params["beside"])
        if beside == "none":
            return super().measure(run)
        bulk = Bulk(mbps=RATES[beside], **traffic.way(run))
        with traffic.beside(run, {"bulk": bulk}) as found:
            time.sleep(SETTLE_S)  # until it has its rate, and has filled what it will fill
            measures = super().measure(run)
            since_end_s = time.monotonic() - run.went
        began = found["end"]["ended_s"] - since_end_s
        took = measures["completion_s"]
        mbps = rates.mbps(found["bulk"]["bins"], began, began + took) or 0.0
        own = page(str(run.params["page"])).bytes * 8e-6 / took
        return {**measures, "bulk_mbps": mbps, "total_mbps": mbps + own}
