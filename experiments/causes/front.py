# SPDX-License-Identifier: MIT
"""An object waits for what stands in front of it: bytes in front / rate."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from experiments.causes import link
from experiments.causes.cause import Cause, Seen, Side, explained, explains, near, number
from experiments.causes.units import mbps, ms, percent, seconds, size, three
from topologies.parameter import Params

HELD = "held_bytes"  # a measure
SEND_BUFFERS = "send buffers"


def held(params: Params) -> Iterator[tuple[str, float | None]]:
    """What may stand in front, by where; None: as much as the kernel's own rule lets it."""
    if params.get("way") == "pipes" and params.get("binding") == "early":
        pipes = number(params, "pipes")
        app, sndbuf = number(params, "app_buffer"), number(params, "pipe_sndbuf")
        if app:
            yield "the proxy's queues", app * pipes
        yield (SEND_BUFFERS, sndbuf * pipes) if sndbuf else ("the kernel's send buffers", None)
    yield "the last mile's queue", link.queue_bytes(params)


@dataclass(frozen=True)
class Front(Cause):
    """`alone_s`: what the object takes alone where it was published; else the round trip.
    `rates`: published seconds by `mbps`, where what stands in front should be the same at each."""

    alone_s: float | None = None
    rates: Mapping[float, float] = field(default_factory=dict)

    def tell(self, seen: Seen) -> str:
        told = [self._side(seen, side, paper) for side, paper in seen.both()]
        text = " ".join(filter(None, told))
        return f"{text} {self._by_rate()}".strip() if text else ""

    def _in_front(self, took_s: float, alone_s: float, rate: float) -> float:
        return max(0.0, took_s - alone_s) * rate * 1e6 / 8

    def _side(self, seen: Seen, side: Side, paper: float | None) -> str:
        ours, rate = side.median(seen.metric), link.mbps(side.params) if side.settings else None
        if paper is None or ours is None or rate is None or not self._waits(side.params):
            return ""
        alone = link.rtt_s(side.params)
        mine = self._in_front(ours, alone, rate)
        theirs = self._in_front(paper, alone if self.alone_s is None else self.alone_s, rate)
        places = dict(held(side.params))
        known = sum(it for it in places.values() if it is not None)
        text = (
            f"Ours, {seconds(ours)}, is a round trip and what {size(mine)} in front of the object "
            f"take at {mbps(rate)}: {self._room(places, known, mine)}. The published "
            f"{seconds(paper)} is what {size(theirs)} take at that rate"
        )
        if None not in places.values() and not near(theirs, known):
            faster = known * 8e-6 / max(paper - alone, 1e-9)
            text += f", {self._part(places, known, theirs)} as long at {mbps(faster)}"
        return f"{text}.{self._sampled(side, mine, rate)}"

    @staticmethod
    def _part(places: Mapping[str, float | None], known: float, theirs: float) -> str:
        """Of send buffers, if what else there is was full: they count a kernel's bookkeeping."""
        set_to = places.get(SEND_BUFFERS)
        if not set_to:
            return f"{percent(theirs / known)} of the room here; all of it takes"
        part = max(0.0, theirs - (known - set_to)) / set_to
        return f"with {percent(part)} of the send buffers full; all of them take"

    @staticmethod
    def _sampled(side: Side, mine: float, rate: float) -> str:
        """By the pipes' own statistics, which know nothing of what the proxy queues. Of what was
        sent and not acknowledged, what a round trip holds waits for nothing."""
        found = side.median(HELD)
        if found is None:
            return ""
        queued = number(side.params, "app_buffer") * number(side.params, "pipes")
        flies = link.pipe_rtt_s(side.params) * rate * 1e6 / 8
        stood = found - flies + queued
        text = (
            f" By the pipes' statistics {size(found)} were unsent or in flight, {size(flies)} of "
            f"them a round trip's"
        )
        if queued:
            text += f"; with the proxy's queues {size(stood)} stood in front"
        return f"{text}, {explains(stood, mine)}."

    def _room(self, places: Mapping[str, float | None], known: float, mine: float) -> str:
        named = ", ".join(f"{size(it)} in {where}" for where, it in places.items() if it)
        own = [where for where, it in places.items() if it is None]
        if own:
            rest = mine - known
            return f"{named} at most" + (f", and {size(rest)} in {own[0]}" if rest > 0 else "")
        fits = near(known, mine) or (mine < known and len(places) == 1)
        return f"there is room for {size(known)} ({named}), {explained(fits)}"

    @staticmethod
    def _waits(params: Params) -> bool:
        """Late binding and an object alone have nothing in front of them."""
        early = params.get("binding") == "early" or params.get("way") == "direct"
        return early and params.get("bulk") is not False

    def _by_rate(self) -> str:
        """Whether the published ones are of one number of bytes."""
        if len(self.rates) < 2 or self.alone_s is None:
            return ""
        bytes_at = [
            self._in_front(took, self.alone_s, rate * link.USERS)
            for rate, took in self.rates.items()
        ]
        rates = [three(rate) for rate in self.rates]
        listed = ", ".join(size(it) for it in bytes_at)
        same = max(bytes_at) <= min(bytes_at) * 1.3
        return (
            f"At {', '.join(rates)}\N{NO-BREAK SPACE}Mbit/s the published ones are {listed}: "
            + ("the same buffer at each rate." if same else "another one at each rate.")
        )


@dataclass(frozen=True)
class Download(Cause):
    """What stands in front is a download of so many bytes as the parameter `size` says, which
    began `after_s` before. Of that time some is the download's own beginning."""

    size: str
    after_s: float
    alone_s: float

    def tell(self, seen: Seen) -> str:
        rate = link.mbps(seen.of.params) if seen.of.settings else None
        ours, paper = seen.of.median(seen.metric), seen.paper_sides[0]
        if rate is None or ours is None or paper is None:
            return ""
        count = number(seen.of.params, self.size)
        takes = count * 8e-6 / rate
        whole = link.rtt_s(seen.of.params) + takes
        least = whole - self.after_s
        fits = least * 0.95 <= ours <= whole * 1.05
        theirs = self.alone_s + takes
        return (
            f"{size(count)} take {seconds(takes)} at {mbps(rate)}. With a round trip that is "
            f"{seconds(whole)}, less what went in the {ms(self.after_s)} by which the object was "
            f"asked for later: {seconds(least)} to {seconds(whole)} are expected, "
            f"{seconds(ours)} were measured, {explained(fits)}. Without that delay "
            f"{seconds(theirs)} are expected, "
            + (
                f"which explains the published {seconds(paper)}."
                if near(theirs, paper)
                else f"and {seconds(paper)} were published."
            )
        )
