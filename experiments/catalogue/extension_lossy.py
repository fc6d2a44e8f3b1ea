# SPDX-License-Identifier: MIT
"""A short file over a path that loses packets: the extension beside the baseline."""

from experiments.catalogue.download import NAMES, Download
from experiments.model import Claim, Figure
from topologies.parameter import Params

SIZES = (50_000, 300_000)
BASE: Params = {"preset": "lossy", "pipes": 8}
MOST_P95 = 0.75  # of the baseline's
NO_WORSE = 1.02  # where both are alike no interval lies below 1


def claims_of(size: int) -> tuple[Claim, Claim]:
    runs: Params = {**BASE, "size": size}
    of, over = {**runs, "extend": "auto"}, {**runs, "extend": "never"}
    row, where, what = "extension-lossy", "not published", f"{NAMES[size]}, lossy, 8 fresh pipes"
    return (
        Claim(
            row,
            where,
            f"{what}: the slow ones, to the baseline's",
            of,
            over,
            statistic="p95",
            than=MOST_P95,
        ),
        Claim(
            row,
            where,
            f"{what}: time, to the baseline's (no worse: below {NO_WORSE})",
            of,
            over,
            than=NO_WORSE,
        ),
    )


class ExtensionLossy(Download):
    name = "extension-lossy"
    clients = ("namespace",)
    ways = ("pipes",)
    title = "A short file over a path that loses packets, by extension and baseline"
    question = "Does a lost packet near the end of a file cost less where its last bytes go twice?"
    grids = ({"extend": ("auto", "never"), **BASE, "size": SIZES},)
    reps = 40
    quick_grids = ({"extend": ("auto", "never"), **BASE, "size": SIZES[-1]},)
    quick_reps = 40
    claims = tuple(claim for size in SIZES for claim in claims_of(size))
    figures = (
        Figure(
            name="cdf",
            title="A short file on the lossy last mile",
            kind="cdf",
            x="completion_s",
            hue="extend",
            facet="size",
        ),
        Figure(
            name="time",
            title="Completion time by size",
            kind="against",
            x="size",
            hue="extend",
            floor="floor_s",
        ),
    )
    notes = (
        "Every run has freshly dialled pipes. Extension and baseline meet the same losses: 40 "
        "seeds, for the 95th percentile of fewer has no interval worth the name.",
        "The 95th percentile is taken of the extension's runs and of the baseline's, and the first "
        "is divided by the second. For the interval the seeds are drawn again with replacement, "
        "the same for both. The median is that of the ratios of runs with the same seed.",
        "The bounds are the laboratory's own: at most 0.75 of the baseline's 95th percentile, and "
        "a median that is no worse. Of two that are alike no interval lies below 1, so 2 % more "
        "is not called worse.",
    )
