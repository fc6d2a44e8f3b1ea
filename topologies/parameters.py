# SPDX-License-Identifier: MIT
"""All that a topology takes, beside what a last mile, the way behind it and its hosts declare."""

from dataclasses import replace

from topologies.addresses import SERVERS_MOST
from topologies.hosts import HostSettings
from topologies.mile import BOTH, MILE, SHORTHANDS
from topologies.parameter import Parameter, declared_by, written
from topologies.presets import PRESETS
from topologies.wan import Wan

PRESET = Parameter(
    "preset", "wired", "text", "the last mile by name", tuple(PRESETS), noun="last mile"
)
BOTTLENECK = Parameter(
    "bottleneck",
    "network",
    "text",
    "where rate and queue are: in the network or in the sender's own device",
    ("network", "sender"),
)
LINK = Parameter(
    "link",
    "auto",
    "text",
    "what emulates the last mile; veth: nothing, but the sender's own queue has a rate",
    ("auto", "netem", "linkem", "veth"),
)
CLIENT = Parameter(
    "client",
    "namespace",
    "text",
    "where client and lp run: a namespace, or a virtual machine that tm3.ko redirects in",
    ("namespace", "vm"),
)
WAN = declared_by(Wan)
SERVERS = Parameter(
    "servers",
    1,
    "whole",
    "servers, each behind a wide-area link of its own",
    low=1,
    high=SERVERS_MOST,
)
HOSTS = declared_by(HostSettings)
# Of a pair of proxies in a lab.
PIPES = Parameter("pipes", 4, "whole", "number of pipes", low=1, high=64)
TRANSPORT = Parameter(
    "transport",
    "tcp",
    "text",
    "what pipes are made of; mixed: half of them TCP, half SCTP",
    ("tcp", "mptcp", "sctp", "mixed"),
)
EXTEND = Parameter(
    "extend",
    "auto",
    "text",
    "whether lp speaks the extension: auto is what users get, which is the extension here",
    ("auto", "never", "always"),
    noun="protocol of the pipes",
)

KEY = Parameter(
    "key",
    False,
    "truth",
    "whether both proxies show a key: pipes are encrypted, a session goes on from another address",
)


def _row(names: tuple[str, ...], parameter: Parameter) -> str:
    told = ", ".join(f"`{name}`" for name in names)
    values = parameter.values() + (", or None: no limit" if parameter.optional else "")
    return f"| {told} | {parameter.help} | {values} | {written(parameter.default)} |"


def table() -> str:
    """As README.md has it. Beside a shorthand stand the two parameters that it is for."""
    short = {first: name for name, (first, _) in BOTH.items()}
    seconds = {second for _, second in BOTH.values()}
    rows = ["| parameter | is | values | by default |", "|---|---|---|---|"]
    for it in (PRESET, *MILE.values(), BOTTLENECK, LINK, CLIENT, *WAN, SERVERS, *HOSTS):
        name = short.get(it.name)
        if name:
            shorthand = replace(SHORTHANDS[name], default=it.default)
            rows.append(_row((name, *BOTH[name]), shorthand))
        elif it.name not in seconds:
            rows.append(_row((it.name,), it))
    return "\n".join(rows)
