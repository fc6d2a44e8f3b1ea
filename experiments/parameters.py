# SPDX-License-Identifier: MIT
"""The parameters that every experiment has, and how their values are written.

A configuration is a full set of them together with the experiment's own. None leaves a parameter
to the preset or to the kernel, and stands where one does not apply: those of the pipes, without.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from base.sources import ROOT
from experiments import traces
from experiments.model import Parameter, Params, Value
from topologies.mile import BOTH, CHOICES, NAMES, RANGES, Mile, ParameterError
from topologies.presets import PRESETS, miles_of, one_mile, two_miles

SIZES = {"": 1, "B": 1, "KB": 10**3, "K": 10**3, "MB": 10**6, "M": 10**6, "GB": 10**9, "G": 10**9}
SIZES |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
# What is asked for where a parameter names no limit, but could not be measured in a lifetime.
MOST = {"size": 2**62, "whole": 10**6, "number": 10**6}
TRUTHS = {"yes": True, "true": True, "on": True, "1": True}
TRUTHS |= {"no": False, "false": False, "off": False, "0": False}
UNSET = ("none", "default")
TEXT_WITH_COMMAS = ("loss_list_down", "loss_list_up")  # several values lie between semicolons
WAYS = ("pipes", "direct", "mptcp", "http2")

_MILE_HELP = {
    "down_mbps": "rate towards the client, Mbit/s",
    "up_mbps": "rate from the client, Mbit/s",
    "rtt_ms": "round trip of the last mile, ms",
    "queue_down_ms": "queue towards the client, ms at its rate",
    "queue_up_ms": "queue from the client, ms at its rate",
    "loss_down": "share of packets lost towards the client",
    "loss_up": "share of packets lost from the client",
    "loss_model": "how losses follow each other",
    "loss_burst_packets": "mean length of a burst, with loss_model bursty",
    "loss_list_down": "which packets are lost, with loss_model list: 3,7,9-12 or @FILE",
    "loss_list_up": "the same from the client",
    "jitter_ms": "variation of the delay, ms",
    "jitter_dist": "its distribution",
    "jitter_reorder": "whether it may change the order of packets",
    "reorder": "share of packets that are held back",
    "reorder_ms": "for how long, ms",
    "duplicate": "share of packets that arrive twice",
    "aqm": "what is dropped of a full queue: the newest (tail), or by CoDel",
    "trace_down": "in place of the rate towards the client a file in Mahimahi's format, or "
    "synthetic-lte, which is made here",
    "trace_up": "the same from the client",
    "mtu": "bytes of an IP packet",
    "mbps": "rate of both directions, Mbit/s",
    "queue_ms": "queue of both directions, ms at their rate",
    "loss": "share of packets lost, both directions: 1% or 0.01",
}
MILE = tuple(_MILE_HELP)
_TEXT = ("loss_list_down", "loss_list_up", "trace_down", "trace_up")


def _of_mile(name: str) -> Parameter:
    """A last mile's parameter; unset, it is the preset's."""
    full = BOTH.get(name, (name,))[0]
    text = _MILE_HELP[name]
    if full in CHOICES:
        return Parameter(name, None, "text", text, choices=CHOICES[full])
    if full in _TEXT:
        return Parameter(name, None, "text", text)
    if full == "jitter_reorder":
        return Parameter(name, None, "truth", text)
    allowed = RANGES[full]
    kind = "whole" if allowed.whole else "number"
    return Parameter(name, None, kind, text, low=allowed.low, high=allowed.high)


def _segments(name: str, text: str) -> Parameter:
    return Parameter(name, None, "whole", text, low=1, high=65535)


_EARLY = (("binding", "early"),)
# Of the proxies: without pipes they do not apply.
PROXIES = (
    Parameter("binding", "late", "text", "when a message is bound to a pipe", ("late", "early")),
    Parameter(
        "pipe_policy",
        "soonest",
        "text",
        "which pipe takes a message",
        ("soonest", "least", "rr", "random", "fixed"),
    ),
    Parameter(
        "aggregate",
        None,
        "text",
        "late binding: what bounds the pipes together; unset: as the proxies do by themselves",
        ("delay", "dswa", "off"),
    ),
    Parameter(
        "lambda",
        None,
        "number",
        "the paper's",
        low=0.1,
        high=100,
        needs=(("binding", "late"), ("aggregate", "dswa")),
    ),
    Parameter(
        "conn_policy",
        None,
        "text",
        "which connection comes next; unset: as the proxies do by themselves",
        ("las", "drr", "fifo"),
    ),
    Parameter("app_buffer", None, "size", "queue of a pipe in the proxy", low=0, needs=_EARLY),
    Parameter("pipe_sndbuf", None, "size", "SO_SNDBUF of each pipe", low=1024, needs=_EARLY),
    Parameter(
        "transport",
        "tcp",
        "text",
        "what pipes are made of; mixed: half of them TCP, half SCTP",
        ("tcp", "mptcp", "sctp", "mixed"),
    ),
    Parameter("warm", False, "truth", "whether the pipes carried 1 MB before the run"),
    Parameter("proxies", None, "text", "folder of another rp and lp; unset: those built here"),
)
LAB = (
    Parameter("preset", "wired", "text", "the last mile by name", tuple(PRESETS)),
    Parameter(
        "topology",
        None,
        "text",
        "last miles side by side; unset: as many as the preset has",
        ("one", "two"),
    ),
    *(_of_mile(name) for name in MILE),
    Parameter("wan_mbps", 1000.0, "number", "proxy to server, Mbit/s", low=0.01, high=10_000),
    Parameter("wan_rtt_ms", 4.0, "number", "proxy to server, ms there and back", low=0, high=20e3),
    Parameter(
        "bottleneck",
        "network",
        "text",
        "where rate and queue are: in the network or in the sender's own device",
        ("network", "sender"),
    ),
    Parameter(
        "link",
        "auto",
        "text",
        "what emulates the last mile; veth: nothing, but the sender's own queue has a rate",
        ("auto", "netem", "linkem", "veth"),
    ),
    Parameter(
        "client",
        "namespace",
        "text",
        "where client and lp run: a namespace, or a virtual machine that tm3.ko redirects in",
        ("namespace", "vm"),
    ),
    _segments("initcwnd", "initial congestion window, segments"),
    _segments("initrwnd", "initial receive window, segments"),
)
COMMON = (
    Parameter("way", "pipes", "text", "how the client reaches the server", WAYS),
    Parameter("pipes", 8, "whole", "number of pipes; 0 is the direct way", low=0, high=64),
    Parameter("cc", "cubic", "text", "congestion control of pipes and of plain connections"),
    *PROXIES,
    *LAB,
)
OF_PIPES = tuple(it.name for it in PROXIES)
_LAB_NAMES = tuple(it.name for it in LAB)
# What a preset is changed by.
UNCHANGED = {it.name: it.default for it in LAB}
CHANGES = (*MILE, "wan_mbps", "wan_rtt_ms", "initcwnd", "initrwnd")


def by_name(own: Iterable[Parameter] = ()) -> dict[str, Parameter]:
    """The common ones and an experiment's own, which replace a common one of the same name."""
    return {it.name: it for it in (*COMMON, *own)}


def _size(name: str, word: str) -> int:
    number = word.rstrip("BbKkMmGgIi")
    unit = word[len(number) :].upper()
    try:
        exact = float(number) * SIZES[unit]
    except (KeyError, ValueError):
        raise ParameterError(name, f"{word!r} is no size (wanted: 300KB, 2MB, 1500)") from None
    if not math.isfinite(exact) or exact != int(exact):
        raise ParameterError(name, f"{word!r} is no whole number of bytes")
    return int(exact)


def _number(name: str, word: str) -> float:
    share = word.endswith("%")
    try:
        value = float(word.removesuffix("%"))
    except ValueError:
        raise ParameterError(name, f"{word!r} is not a number") from None
    return round(value / 100, 12) if share else value


def _whole(name: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ParameterError(name, f"{word!r} is not a whole number") from None


def _truth(name: str, word: str) -> bool:
    if word.lower() not in TRUTHS:
        raise ParameterError(name, f"{word!r} is neither yes nor no")
    return TRUTHS[word.lower()]


_READERS = {"size": _size, "number": _number, "whole": _whole, "truth": _truth}


def read(parameter: Parameter, word: str) -> Value:
    """A value as it is written on a command line."""
    word = word.strip()
    if parameter.default is None and word.lower() in UNSET:
        return None
    reader = _READERS.get(parameter.kind)
    return checked(parameter, reader(parameter.name, word) if reader else word)


def checked(parameter: Parameter, value: Value) -> Value:
    """The value in its kind's own type, or a ParameterError."""
    name = parameter.name
    if value is None:
        if parameter.default is None:
            return None
        raise ParameterError(name, "needs a value")
    if isinstance(value, str) and parameter.kind != "text":
        return read(parameter, value)
    if parameter.kind == "text":
        if parameter.choices and value not in parameter.choices:
            raise ParameterError(name, f"{value!r} is none of {', '.join(parameter.choices)}")
        return str(value)
    if parameter.kind == "truth":
        if not isinstance(value, bool):
            raise ParameterError(name, f"{value!r} is neither yes nor no")
        return value
    return _in_range(parameter, value)


def _in_range(parameter: Parameter, value: Any) -> int | float:
    name = parameter.name
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not -math.inf < value < math.inf:
        raise ParameterError(name, f"{value!r} is not a number")
    if parameter.kind in ("whole", "size") and value != int(value):
        raise ParameterError(name, f"{value!r} is not a whole number")
    low = -math.inf if parameter.low is None else parameter.low
    high = MOST[parameter.kind] if parameter.high is None else parameter.high
    if not low <= value <= high:
        raise ParameterError(name, f"{value!r} is not from {low:g} to {high:g}")
    return int(value) if parameter.kind in ("whole", "size") else float(value)


def complete(own: Iterable[Parameter], chosen: Mapping[str, Value]) -> dict[str, Value]:
    """A whole configuration: `chosen` checked, the rest by default, what does not apply None."""
    known = by_name(own)
    for name in chosen:
        if name not in known:
            raise unknown(name, known)
    full = {
        name: checked(it, chosen[name]) if name in chosen else it.default
        for name, it in known.items()
    }
    _place(full)
    if full["way"] == "pipes" and full["pipes"] == 0:
        full["way"] = "direct"
    if full["way"] != "pipes":
        full.update(dict.fromkeys(OF_PIPES), pipes=0)
    for it in known.values():
        if not _has_what_it_needs(it, full):
            full[it.name] = None
    if full["client"] == "vm" and full["bottleneck"] == "sender":
        raise ParameterError("client", "a virtual machine's own queue is not ours to limit")
    miles(full)
    return full


def _has_what_it_needs(parameter: Parameter, full: Params) -> bool:
    return all(full[name] == value for name, value in parameter.needs)


def check_used(
    own: Iterable[Parameter], told: Iterable[Params], configurations: Sequence[Params]
) -> None:
    """Refuses a parameter that was told and applies to no configuration that has pipes."""
    with_pipes = [it for it in configurations if it["way"] == "pipes"]
    asked = {name for it in told for name, value in it.items() if value is not None}
    for it in by_name(own).values():
        unused = it.needs and all(params[it.name] is None for params in with_pipes)
        if it.name in asked and with_pipes and unused:
            raise ParameterError(it.name, f"goes with {needs(it)} only")


def needs(parameter: Parameter) -> str:
    """What other parameters must be for this one to apply, in words; empty: it always does."""
    return " and ".join(f"{name} {value}" for name, value in parameter.needs)


def _place(full: dict[str, Value]) -> None:
    """Files are meant from where the command was given, also when it is resumed elsewhere."""
    for name in _TEXT:
        told = full[name]
        if isinstance(told, str) and name.startswith("trace_"):
            if traces.is_named(told):
                continue
            full[name] = str(Path(told).resolve())
        elif isinstance(told, str) and told.startswith("@"):
            full[name] = f"@{Path(told[1:]).resolve()}"
    if full["proxies"] is not None:
        full["proxies"] = _from_root(Path(str(full["proxies"])).resolve())


def _from_root(path: Path) -> str:
    """As results keep it: they name no folder above the project's own."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def proxies_folder(params: Params) -> Path | None:
    """Where the rp and lp of a configuration are; None: where everything is built."""
    told = params.get("proxies")
    return ROOT / str(told) if told else None


def unknown(name: str, known: Iterable[str]) -> ParameterError:
    return ParameterError(name, f"no such parameter; there are {', '.join(sorted(known))}")


def _changes(params: Params) -> dict[str, Any]:
    return _with_traces({name: params[name] for name in MILE if params.get(name) is not None})


def _with_traces(told: dict[str, Any]) -> dict[str, Any]:
    """Files in place of the names of traces that are made here."""
    there = [name for name in ("trace_down", "trace_up") if name in told]
    return told | {name: str(traces.path_of(told[name])) for name in there}


def is_two(params: Params) -> bool:
    asked = params.get("topology")
    return asked == "two" if asked else len(miles_of(str(params["preset"]))) == 2


def miles(params: Params) -> tuple[Mile, ...]:
    """The last mile(s) of a configuration: the preset and what changes it."""
    preset, changes = str(params["preset"]), _changes(params)
    if is_two(params):
        return two_miles(preset, **changes)
    return (one_mile(preset, **changes),)


def lab_parameters(params: Params) -> dict[str, Any]:
    """Those that topologies.topos takes."""
    found = {name: params[name] for name in _LAB_NAMES if params.get(name) is not None}
    found.pop("topology", None)
    return _with_traces(found)


assert set(NAMES) | set(BOTH) == {*MILE, "seed"}, "a parameter of Mile has no help here"
