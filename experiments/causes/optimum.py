# SPDX-License-Identifier: MIT
"""What no policy can gain: how near to the least possible the other side is already."""

from dataclasses import dataclass
from statistics import median
from typing import Literal

from experiments.causes.cause import Cause, Seen
from experiments.causes.units import three

OVER_OPTIMUM = "over_optimum"  # a measure: times over the least that is possible


@dataclass(frozen=True)
class Optimum(Cause):
    """`where`: of several settings, in that which is furthest from it, or in the median one."""

    where: Literal["furthest", "median"] = "median"

    def tell(self, seen: Seen) -> str:
        settings = seen.over.settings if seen.over is not None else ()
        found = [it.measured[OVER_OPTIMUM] for it in settings if OVER_OPTIMUM in it.measured]
        if not found:
            return ""
        times = max(found) if self.where == "furthest" else median(found)
        least = 1 / times
        text = (
            f"The other side took {three(times)} times the least that is possible over these "
            f"paths{', where it took most' if self.where == 'furthest' else ''}: no ratio can be "
            f"below {three(least)}"
        )
        if seen.paper is not None and least > seen.paper:
            text += f", so the published {three(seen.paper)} cannot be reached"
        return f"{text}."
