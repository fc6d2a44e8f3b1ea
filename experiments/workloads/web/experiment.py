# SPDX-License-Identifier: MIT
"""What the experiments with pages have in common."""

from typing import TYPE_CHECKING, Any, ClassVar

from experiments.model import Experiment, Metric
from experiments.parameters import WAYS
from experiments.workloads import rates
from experiments.workloads.web.load import PARAMETERS, Plan, load
from experiments.workloads.web.pages import page
from topologies.parameter import Params, Value

if TYPE_CHECKING:
    from experiments.live_run import LiveRun


class PageExperiment(Experiment):
    """Loads a page in each run. `fixed`: parameters of pages that do not vary."""

    fixed: ClassVar[dict[str, Value]] = {}
    parameters = PARAMETERS
    units = ("page",)
    ways = WAYS
    packages = ("nginx", "openssl")
    metrics = (
        Metric("completion_s", "page load time", "s", matters=0.05),
        Metric("over_floor", "page load time over RTT + size/rate", ""),
        Metric("html_s", "HTML complete", "s"),
        Metric("connections", "TCP connections", "", "neither"),
        Metric("page_bytes", "size of the page", "bytes", "neither"),
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        measures = load(run, Plan.of(run.params, **self.fixed))
        floor = self.floor_s(run.params)
        return {**measures, "floor_s": floor, "over_floor": measures["completion_s"] / floor}

    def floor_s(self, params: Params) -> float:
        return rates.floor_s(params, page(str(params["page"])).bytes)
