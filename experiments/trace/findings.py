# SPDX-License-Identifier: MIT
"""What traces tell together: distributions over all sessions, flows and slots of their captures."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.trace.bursts import DOWN, UP
from experiments.trace.capture import SECOND
from experiments.trace.distribution import Distribution
from experiments.trace.flow import KINDS, Flow
from experiments.trace.slots import Growth
from experiments.trace.trace import Session, Trace

RATED_NS = 3 * SECOND  # a flow that sent for no longer has no rate
WAYS = {UP: "up", DOWN: "down"}
# Flows by the bytes that they carried in a direction, slots by those that went up: from, to.
VOLUMES = {"100 KB to 1 MB": (10**5, 10**6), "1 to 10 MB": (10**6, 10**7)}
VOLUMES |= {"10 MB and more": (10**7, 1 << 62)}
UPLOADS = {"under 10 KB": (1, 10**4), "10 to 100 KB": (10**4, 10**5)}
UPLOADS |= {"100 KB and more": (10**5, 1 << 62)}


@dataclass(frozen=True)
class Kind:
    """Flows of one kind: pipes, or all others."""

    name: str
    flows: Sequence[Flow]
    busy: Counter[int]  # slots, by the number of these flows that carried data
    growth: Sequence[Growth]

    def durations(self, way: int, volume: tuple[int, int] = (1, 1 << 62)) -> Distribution:
        low, high = volume
        return Distribution(
            it.bursts.duration_ns[way] / SECOND
            for it in self.flows
            if low <= it.bursts.bytes[way] < high
        )

    def rates(self, way: int) -> Distribution:
        """In Mbit/s."""
        return Distribution(
            8e-6 * it.bursts.bytes[way] * SECOND / it.bursts.duration_ns[way]
            for it in self.flows
            if it.bursts.duration_ns[way] > RATED_NS
        )

    def handshakes(self) -> Distribution:
        return _seconds(it.trips.handshake_ns for it in self.flows)

    def least_trips(self) -> Distribution:
        return _seconds(it.trips.least_ns for it in self.flows)

    def increases(self, upload: tuple[int, int] = (1, 1 << 62)) -> Distribution:
        """I(s), in seconds."""
        low, high = upload
        return Distribution(it.mean_s for it in self.growth if low <= it.up < high)

    def concurrent(self) -> float | None:
        """The share of slots with two flows or more; None: there is no slot."""
        total = self.busy.total()
        return sum(n for flows, n in self.busy.items() if flows > 1) / total if total else None


@dataclass(frozen=True)
class Findings:
    sessions: Sequence[Session]
    kinds: Sequence[Kind]  # those of which there are flows

    def volumes(self, *ways: int) -> Distribution:
        return Distribution(sum(it.payload[way] for way in ways) for it in self.sessions)

    def lengths(self) -> Distribution:
        return _seconds(it.last_ns - it.began_ns for it in self.sessions)


def _seconds(values_ns: Iterable[int | None]) -> Distribution:
    return Distribution(it / SECOND for it in values_ns if it is not None)


def findings(traces: Sequence[Trace]) -> Findings:
    flows = [flow for trace in traces for flow in trace.flows()]
    kinds = []
    for name in KINDS:
        own = [flow for flow in flows if flow.kind == name]
        # Captures without such flows say nothing of how many there are at a time.
        with_own = [it for it in traces if any(flow.kind == name for flow in it.flows())]
        busy = sum((it.slots.busy[name] for it in with_own), Counter())
        growth = [one for it in with_own for one in it.slots.growth[name].values()]
        if own:
            kinds.append(Kind(name, own, busy, growth))
    return Findings([it for trace in traces for it in trace.sessions], kinds)
