# SPDX-License-Identifier: MIT
"""The last miles of a lab with a prompt: what is in force, what waits in their queues, and changes.

Only what can be changed while packets are under way: linkem takes it from the next packet on, and
it is read back before anybody is told that it is in force.
"""

import math
import threading
import time
from typing import Any

from topologies.lab import Lab
from topologies.mile import MILE
from topologies.parameter import ParameterError

Told = dict[str, Any]
CHANGES = ("rtt_ms", "down_mbps", "up_mbps", "loss_down", "loss_up", "queue_down_ms", "queue_up_ms")


def _why_not(mile: Any, name: str) -> str | None:
    """Why a parameter is not to be turned on a mile like this one."""
    way = "down" if "down" in name else "up"
    if name.startswith("loss") and mile.loss_model == "list":
        return "a list says which packets are lost"
    if "mbps" in name and getattr(mile, f"trace_{way}"):
        return "a trace has the rate"
    return None


class Links:
    """Changes come from other threads than the prompt's; one at a time."""

    EVERY_S = 0.2

    def __init__(self, lab: Lab) -> None:
        self._links = lab.miles
        self._lock = threading.Lock()

    def told(self) -> Told:
        with self._lock:
            return {"time": time.time(), "miles": {it: self._mile(it) for it in self._links}}

    def _mile(self, name: str) -> Told:
        link = self._links[name]
        found: Told = {it: getattr(link.mile, it) for it in CHANGES}
        found["fixed"] = {it: why for it in CHANGES if (why := _why_not(link.mile, it))}
        truth = getattr(link, "truth", None)
        if truth is not None:
            counted = truth()
            found["counted"] = {
                way: counted[side]["counters"] | {"queue": counted[side]["now"]}
                for way, side in (("up", "ab"), ("down", "ba"))
            }
        return found

    def change(self, name: str, parameter: str, value: Any) -> Told:
        """Raises ParameterError, and whatever a link refuses; then nothing has changed."""
        if name not in self._links:
            raise ParameterError("mile", f"{name!r} is none of {', '.join(self._links)}")
        if parameter not in CHANGES:
            raise ParameterError("parameter", f"{parameter!r} is none of {', '.join(CHANGES)}")
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise ParameterError(parameter, f"{value!r} is no number")
        MILE[parameter].check(float(value))
        why = _why_not(self._links[name].mile, parameter)
        if why:
            raise ParameterError(parameter, why)
        with self._lock:
            self._links[name].change(**{parameter: float(value)})
        return self.told()
