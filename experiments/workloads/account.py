# SPDX-License-Identifier: MIT
"""What the proxies' own statistics say about a run; docs/statistics.md is their format.

Downlink is what RP sends into the pipes and LP receives, uplink the other way round. Messages wait
in order at whoever receives: LP for the downlink.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from base.shell import until

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

Record = dict[str, Any]
Way = Literal["down", "up"]
SENDER = {"down": "rp", "up": "lp"}
RECEIVER = {"down": "lp", "up": "rp"}


@dataclass(frozen=True)
class Acks:
    """The extension's, and their bytes with headers."""

    count: int
    bytes: int


@dataclass(frozen=True)
class Account:
    """The records of both proxies."""

    rp: Sequence[Record]
    lp: Sequence[Record]

    def of(self, who: str, kind: str) -> list[Record]:
        records = self.rp if who == "rp" else self.lp
        return [record for record in records if record["type"] == kind]

    def pipes(self, who: str) -> list[Record]:
        """The latest of each pipe."""
        latest = {(one["session"], one["pipe"]): one for one in self.of(who, "pipe")}
        return [latest[key] for key in sorted(latest)]

    def connections(self, who: str) -> list[Record]:
        return self.of(who, "conn")

    def retransmits(self, way: Way) -> int:
        return sum(pipe["retransmits"] for pipe in self.pipes(SENDER[way]))

    def acks(self) -> "Acks":
        """Of both ways: each proxy tells of what it sent."""
        both = [pipe for who in SENDER.values() for pipe in self.pipes(who)]
        return Acks(
            sum(pipe["tx_acks"] for pipe in both), sum(pipe["tx_ack_bytes"] for pipe in both)
        )

    def efficiency(self) -> float | None:
        """User bytes over the bytes of all messages, both ways; None before there were any."""
        user = sum(one["tx_bytes"] + one["rx_bytes"] for one in self.connections("lp"))
        messages = sum(one["tx_bytes"] + one["rx_bytes"] for one in self.pipes("lp"))
        return user / messages if messages else None

    def shares(self, way: Way) -> list[float]:
        """Of each pipe, of what went over all of them."""
        sent = [pipe["tx_bytes"] for pipe in self.pipes(SENDER[way])]
        return [each / sum(sent) for each in sent] if sum(sent) else []

    def by_size(self, way: Way) -> list[Record]:
        """The connections as their receiver saw them, the one that carried most first."""
        found = self.connections(RECEIVER[way])
        return sorted(found, key=lambda one: one["rx_bytes"], reverse=True)

    def largest(self, way: Way) -> Record | None:
        return next(iter(self.by_size(way)), None)

    def measures(self, way: Way = "down") -> dict[str, Any]:
        """What is worth a line in a run's record."""
        largest = self.largest(way)
        shares = self.shares(way)
        waited = largest["reorder_ms"] if largest else {}
        return {
            "retransmits": self.retransmits(way),
            "efficiency": self.efficiency(),
            "pipe_share_max": max(shares, default=None),
            "pipe_share_min": min(shares, default=None),
            **{f"reorder_{name}_s": waited[name] / 1e3 for name in waited},
            "reorder_max_bytes": largest["reorder_max_bytes"] if largest else None,
        }


def complete(records: Iterable[Record], connections: int) -> bool:
    """Whether all that were opened are over, and the pipes were told of since."""
    seen, sampled = 0, False
    for record in records:
        if record["type"] == "conn":
            seen, sampled = seen + 1, False
        sampled = sampled or record["type"] == "pipe"
    return seen >= connections and sampled


def account(run: "LiveRun", connections: int, seconds: float = 10.0) -> Account:
    """What both say, once each has told of that many connections and of the pipes after them.

    Counters of pipes come at an interval, so they hold the connections' last bytes only then. What
    warmed the pipes was one more connection, and counts.
    """
    pair = run.pair
    assert pair is not None, "no proxies in this run"
    wanted = connections + bool(run.params["warm"])

    def told() -> Account | None:
        both = pair.statistics("rp"), pair.statistics("lp")
        return Account(*both) if all(complete(one, wanted) for one in both) else None

    return until(f"statistics of {wanted} connections", told, seconds)


def held(records: Iterable[Record], since: float, until: float) -> float | None:
    """Bytes in the pipes' sockets and on their way between two moments of time.monotonic(): the
    median of each pipe's samples, of all pipes; None where there is no sample."""
    ahead = time.time() - time.monotonic()
    found: dict[tuple[int, int], list[int]] = {}
    for it in records:
        if it["type"] == "pipe" and since + ahead <= it["time"] <= until + ahead:
            key = it["session"], it["pipe"]
            found.setdefault(key, []).append(it["unsent"] + it["in_flight"])
    return sum(median(each) for each in found.values()) if found else None


GROWING = ("tx_bytes", "tx_ack_bytes", "tx_acks", "tx_copies")
TOLD_S = 10.0  # until a sample comes


def grown(records: Iterable[Record], since: float, until: float) -> dict[str, int]:
    """What pipes sent between two moments of time.monotonic(): how much their counters grew from
    sample to sample, of the last one before each. Those that a proxy of another build does not
    count are left out."""
    ahead = time.time() - time.monotonic()
    before: dict[tuple[int, int], Record] = {}
    after: dict[tuple[int, int], Record] = {}
    for it in records:
        if it["type"] == "pipe" and it["time"] <= until + ahead:
            key = it["session"], it["pipe"]
            after[key] = it
            if it["time"] <= since + ahead:
                before[key] = it
    return {
        name: sum(
            it[name] - (before[key][name] if key in before else 0) for key, it in after.items()
        )
        for name in GROWING
        if all(name in it for it in after.values())
    }


def copied(run: "LiveRun", messages: int) -> float | None:
    """Messages that a proxy sent a second time since the client went, as a share of `messages`;
    None without proxies, or where these do not tell."""
    if run.pair is None:
        return None
    pair, ended = run.pair, time.time()
    both = ("rp", "lp")

    def told() -> bool:
        return all(pair.statistics(who)[-1].get("time", 0) > ended for who in both)

    until("statistics of both proxies", told, TOLD_S)
    sent = [grown(pair.statistics(who), run.went, time.monotonic()) for who in both]
    return sum(it["tx_copies"] for it in sent) / messages if "tx_copies" in sent[0] else None


def yielding(records: Iterable[Record], since: float) -> float | None:
    """Share of the samples from a moment on (of time.monotonic()) at which the pipes' common limit
    gave way to others; None where nothing bounded the pipes together."""
    begun = since + time.time() - time.monotonic()
    states = [it["state"] for it in records if it["type"] == "aggregate" and it["time"] >= begun]
    return states.count("yield") / len(states) if states else None
