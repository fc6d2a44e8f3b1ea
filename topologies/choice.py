# SPDX-License-Identifier: MIT
"""Which realisation emulates a link."""

from dataclasses import dataclass

from topologies import qdisc
from topologies.linkem import LinkemLink
from topologies.links import EmulatedLink
from topologies.mile import Mile
from topologies.netem import NetemLink
from topologies.parameter import ParameterError
from topologies.parameters import LINK
from topologies.veth import VethLink, why_not_by_veth

REALISATION: dict[str, type[EmulatedLink]] = {
    it.realisation: it for it in (NetemLink, LinkemLink, VethLink)
}


@dataclass(frozen=True)
class Choice:
    """Which realisation, and why."""

    realisation: str
    why: str


def choose(asked: str, miles: tuple[Mile, ...]) -> Choice:
    """`auto` takes netem where the kernel has it and it can do what is asked, linkem elsewhere."""
    LINK.check(asked)
    if asked == "linkem":
        return Choice("linkem", "asked for")
    if asked == "veth":
        impossible = [why for mile in miles if (why := why_not_by_veth(mile))]
        if impossible:
            raise ParameterError("link", f"veth will not do: {impossible[0]}")
        return Choice("veth", "asked for")
    reasons = [why for mile in miles if (why := qdisc.why_not_by_netem(mile))]
    missing = qdisc.why_no_netem()
    if asked == "netem":
        if reasons or missing:
            raise ParameterError("link", f"netem will not do: {missing or reasons[0]}")
        return Choice("netem", "asked for")
    if missing or reasons:
        return Choice("linkem", missing or reasons[0])
    return Choice("netem", "the kernel has netem")
