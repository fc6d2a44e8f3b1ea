# SPDX-License-Identifier: MIT
"""What goes again before a pipe is given up is what is overdue there."""

from dataclasses import dataclass

from experiments.causes.cause import Cause, Seen, number
from experiments.causes.units import three
from experiments.workloads.rates import MSS

RETRANSMITS = "retransmits"


@dataclass(frozen=True)
class Overdue(Cause):
    """A share of a file of so many bytes as `size` says."""

    size: str

    def tell(self, seen: Seen) -> str:
        again = seen.of.median(RETRANSMITS)
        count = number(seen.of.params, self.size)
        if again is None or not count or seen.paper is None:
            return ""
        segments = count / MSS
        text = (
            f"Only what is overdue goes again. TCP sent {three(again)} of {segments:.0f} segments "
            f"again"
        )
        if again:
            text += (
                f": as many over another pipe would be {three(again / segments)} of the file, and "
                f"{three(seen.ours)} went there, so TCP was sooner with the others"
            )
        else:
            text += ": nothing was missing, so nothing was overdue, which explains ours"
        needed = seen.paper * segments
        return f"{text}. The published {three(seen.paper)} is {needed:.0f} segments."
