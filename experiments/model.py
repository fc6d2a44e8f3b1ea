# SPDX-License-Identifier: MIT
"""What an experiment is: its parameters and their sweep, what it measures, claims, figures.

An experiment is a subclass of Experiment in experiments/catalogue/, one file each. It says *what*;
the runner, the statistics, the plots and the report read it and need no code for any one of them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from topologies.parameter import Parameter, Params, Value

if TYPE_CHECKING:
    from experiments.causes.cause import Cause
    from experiments.live_run import LiveRun

Grid = Mapping[str, Sequence[Value]]
Statistic = Literal["median", "p95", "worst", "pooled", "geomean", "least", "second", "largest"]
STATISTICS: dict[Statistic, str] = {
    "median": "",
    "p95": "95th percentile",
    "worst": "worst of all runs",
    "pooled": "pooled value",
    "geomean": "geometric mean",
    "least": "least",
    "second": "least but one",
    "largest": "largest",
}
OF_SETTINGS: tuple[Statistic, ...] = ("geomean", "least", "second", "largest")


def as_grid(params: Params, link: Params | None = None) -> Grid:
    """One configuration by itself, on that link."""
    return {name: (value,) for name, value in {**(link or {}), **params}.items()}


OWN = "not published"  # where a bound of the laboratory's own was published


@dataclass(frozen=True)
class Pooled:
    """The quantile of all values that runs list in `measures`, taken together; with `share` None
    their mean. `scale`: to the metric's unit. `given_up`: how many more had none, by the name of
    that measure; they are beyond all others."""

    values: str
    share: float | None
    scale: float = 1.0
    given_up: str = ""


@dataclass(frozen=True)
class Metric:
    """A number that each run measures, by its name in `measures` of a run's record."""

    name: str
    label: str
    unit: str
    better: Literal["less", "more", "neither"] = "less"
    # The smallest effect of interest, as a share of what is compared with; and in the metric's
    # unit, where values may be near 0. None: any effect is of interest.
    matters: float | None = None
    matters_by: float | None = None
    # Of a configuration, and of a claim that asks for it: what runs list, taken together.
    pooled: Pooled | None = None
    is_ratio: bool = False  # a ratio in each single run, where 1 is no effect

    def least(self, beside: float) -> float:
        """In the metric's unit, of a difference to such a value."""
        if self.matters_by is not None:
            return self.matters_by
        return (self.matters or 0.0) * abs(beside) if math.isfinite(beside) else 0.0


@dataclass(frozen=True)
class Claim:
    """A published figure and the runs of ours that answer it.

    `of` and `over` choose runs by parameters. Those not named may be anything that the experiment's
    sweep has beside these, and are paired by value and seed. With `over`, the answer is the median
    of the paired ratios of/over, or of the paired differences of-over, else the median itself.
    Where the 95th percentile is asked for, it is taken of each side, and these two are compared; so
    is what is `pooled`. What is to hold in every run asks for the `worst`, in which one failure is
    enough. Of one of OF_SETTINGS, each setting of what is not named has its own median, and these
    are taken together. `expect` is the direction that was published, in the same terms.
    """

    row: str  # the experiment's name in the list of published figures: download, object-size, ...
    where: str  # "Fig. 9"
    says: str  # "8 pipes instead of 1, 300 KB"
    of: Params
    over: Params | None = None
    metric: str = "completion_s"
    statistic: Statistic = "median"
    settings: int = 0  # of OF_SETTINGS: how many there are; of fewer it is not answered
    compared: Literal["ratio", "difference"] = "ratio"  # with `over`
    paper: float | None = None  # what was published, as a ratio with `over`
    # Of a ratio, what was published of both sides in the metric's unit, where it was.
    paper_sides: tuple[float | None, float | None] = (None, None)
    unit: str = ""  # of `paper` without `over`
    expect: Literal["less", "more", "same"] = "less"
    than: float = 1.0  # the value that `expect` compares with; but for ratios in the metric's unit
    within: float = 0.1  # for "same": the share by which it may differ
    matters: float | None = None  # as of a metric, where this figure's is another
    margin: float = 0.1  # the share of the effect by which ours may differ, as verdicts.py has it
    read_to: float = (
        0.0  # of a published 0: half of the last place printed, in the terms of `paper`
    )
    note: str = ""  # why it comes out otherwise, where that was found out by measuring
    reckoned: str = ""  # the same, where it follows from how the runs are made
    causes: tuple["Cause", ...] = ()  # laws by which it may, which each report works out

    def as_own(self) -> "Claim":
        """The same of runs that it was not published of: a bound of the laboratory's."""
        return replace(self, where=OWN, paper=None, paper_sides=(None, None), read_to=0.0)

    @property
    def is_own(self) -> bool:
        """A bound of the laboratory's, which nobody published."""
        return self.where == OWN

    @property
    def is_difference(self) -> bool:
        return self.over is not None and self.compared == "difference"

    @property
    def measured(self) -> str:
        """What is told where that is no median and no ratio of two."""
        told = STATISTICS[self.statistic], "difference" if self.is_difference else ""
        return ", ".join(filter(None, told))


@dataclass(frozen=True)
class Figure:
    """A plot. `x`, `hue` and `facet` are parameters (or metrics); `where` chooses runs. A ccdf is
    of all times that the runs list as `x`, seconds in `measures`, with those `unanswered`; a cdf
    may be of all values that they list as `listed`."""

    name: str
    title: str
    kind: Literal["against", "normalised", "cdf", "ccdf", "heat", "series"]
    y: str = "completion_s"
    x: str = "pipes"
    hue: str = ""
    facet: str = ""
    where: Params = field(default_factory=dict)
    over: Params = field(default_factory=dict)  # normalised: divided by these runs, paired
    listed: str = ""  # a cdf of all values of a list in `measures`, not of one value of each run
    floor: str = ""  # a metric drawn as a line: what no proxy can go below
    joined: bool = True  # by lines along x; not where its numbers are names
    log: bool = False


class Experiment(ABC):
    """One question. `grids` is the sweep: the union of the products of each grid's axes."""

    name: ClassVar[str]
    title: ClassVar[str]
    question: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("completion_s", "completion time", "s", matters=0.05),
    )
    units: ClassVar[tuple[str, ...]] = ()  # parameters whose values are draws from many: pages
    shown: ClassVar[tuple[str, ...]] = ()  # metrics that the terminal's table has besides
    ways: ClassVar[tuple[str, ...]] = ("pipes", "direct", "mptcp")  # that it measures
    clients: ClassVar[tuple[str, ...]] = ("namespace",)  # where its client programs can run
    grids: ClassVar[tuple[Grid, ...]]
    reps: ClassVar[int] = 20
    quick_grids: ClassVar[tuple[Grid, ...]] = ()  # () is the same as `grids`
    quick_reps: ClassVar[int] = 10
    in_all_quick: ClassVar[bool] = True  # short enough for `run all --quick`
    run_seconds: ClassVar[float] = 5.0  # a first guess of what a run takes; learnt while running
    claims: ClassVar[tuple[Claim, ...]] = ()
    figures: ClassVar[tuple[Figure, ...]] = ()
    drops: ClassVar[bool] = False  # its links tell of each packet that they drop
    packages: ClassVar[tuple[str, ...]] = ()  # programs that must be there
    modules: ClassVar[tuple[str, ...]] = ()  # of Python, which its programs import
    notes: ClassVar[
        tuple[str, ...]
    ] = ()  # paragraphs for the report: how it is set up, what stands for what

    definition: ClassVar[Mapping[str, Any] | None] = None  # what a file says that defines the sweep

    paths: ClassVar[tuple[str, ...]] = ()  # lp has one over each last mile, by these names

    def rp_options(self, params: Params, folder: Path) -> Sequence[str]:
        """More options that rp is started with, where a run has pipes; files that they name may
        be made in `folder`."""
        return ()

    def lp_options(self, params: Params, folder: Path) -> Sequence[str]:
        """The same of lp."""
        return ()

    def controls(self, params: Params) -> bool:
        """Whether its client gives lp commands while it runs (`--control`)."""
        return False

    def draws(self, params: Params) -> bool:
        """Whether the seed draws anything besides what links lose: sizes, moments, pipes."""
        return params.get("pipe_policy") == "random"

    def firewalled(self, params: Params) -> Sequence[int]:
        """Ports of TCP that a firewall at rp drops silently, from before the pipes are dialled."""
        return ()

    @abstractmethod
    def measure(self, run: "LiveRun") -> dict[str, Any]:
        """One run, whose client may go; its metrics. Raises RunFailed.

        The seconds until the user had it all are `completion_s`; every byte was compared.
        """

    def floor_s(self, params: Params) -> float | None:
        """What no proxy could go below, for instance RTT + size/rate; None where unknown."""
        return None
