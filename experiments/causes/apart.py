# SPDX-License-Identifier: MIT
"""Over two paths another split can be sooner only by how far apart the paths end."""

from dataclasses import dataclass
from statistics import median

from experiments.causes.cause import Cause, Seen
from experiments.causes.units import percent, three


@dataclass(frozen=True)
class Apart(Cause):
    """`apart`: the measure of it, in seconds. `nearest`: the published ratio that is nearest to
    no effect, where a range was told."""

    apart: str
    nearest: float

    def tell(self, seen: Seen) -> str:
        settings = seen.over.settings if seen.over is not None else ()
        shares = [
            it.measured[self.apart] / it.measured[seen.metric]
            for it in settings
            if self.apart in it.measured and it.measured.get(seen.metric)
        ]
        if not shares:
            return ""
        most = median(shares)
        text = (
            f"What is to be undercut ends on one path {percent(most)} of its time after the other, "
            f"and no other split of the same bytes gains more"
        )
        if 1 - most <= self.nearest:
            return f"{text}."
        return f"{text}, so the published {three(self.nearest)} cannot be reached."
