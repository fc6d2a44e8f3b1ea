# SPDX-License-Identifier: MIT
"""The parameters that every experiment has, and how their values are written.

A configuration is a full set of them together with the experiment's own. None leaves a parameter
to the preset or to the kernel, and stands where one does not apply: those of the pipes, without.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from base.sources import ROOT
from experiments import traces
from topologies import rssi
from topologies.mile import MILE, SECOND, SHORTHANDS, TRACES, Mile
from topologies.parameter import Parameter, ParameterError, Params, Value, written
from topologies.parameters import (
    BOTTLENECK,
    CLIENT,
    EXTEND,
    HOSTS,
    KEY,
    LINK,
    PIPES,
    PRESET,
    SERVERS,
    TRANSPORT,
    WAN,
)
from topologies.presets import miles_of, one_mile, two_miles

SIZES = {"": 1, "B": 1, "KB": 10**3, "K": 10**3, "MB": 10**6, "M": 10**6, "GB": 10**9, "G": 10**9}
SIZES |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
TRUTHS = {"yes": True, "true": True, "on": True, "1": True}
TRUTHS |= {"no": False, "false": False, "off": False, "0": False}
UNSET = ("none", "default")
# Several values of them lie between semicolons.
TEXT_WITH_COMMAS = ("loss_list_down", "loss_list_up", "interactive")
WAYS = ("pipes", "direct", "haproxy", "mptcp", "http2")
_TRACES = (*TRACES, *(name for name in SECOND if name.removeprefix("second_") in TRACES))
_FILES = ("loss_list_down", "loss_list_up", *_TRACES)
# What stands for a file that is made here.
_MADE_HERE = {
    "trace_down": ", or synthetic-lte, or synthetic-rate:MBPS:PERCENT, made here",
    "delay_trace": ", or synthetic-rtt:MS:PERCENT, made here",
}


def _unset(parameter: Parameter) -> Parameter:
    """One that a preset has a value of already."""
    return replace(
        parameter, default=None, help=parameter.help + _MADE_HERE.get(parameter.name, "")
    )


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
        "the factor of DSWA, the paper's",
        low=0.1,
        high=100,
        needs=(("binding", "late"), ("aggregate", "dswa")),
    ),
    Parameter(
        "thin",
        None,
        "text",
        "what is done for connections that send little; unset: as the proxies do by themselves",
        ("copy", "same-pipe", "off"),
    ),
    Parameter(
        "conn_policy",
        None,
        "text",
        "which connection comes next; unset: as the proxies do by themselves",
        ("las", "drr", "fifo", "rr", "srpt"),
    ),
    Parameter(
        "app_buffer",
        None,
        "size",
        "queue of a pipe in the proxy",
        low=0,
        needs=_EARLY,
        noun="buffer in the proxy",
    ),
    Parameter(
        "pipe_sndbuf",
        None,
        "size",
        "SO_SNDBUF of each pipe",
        low=1024,
        needs=_EARLY,
        noun="send buffer of a pipe",
    ),
    TRANSPORT,
    EXTEND,
    KEY,
    Parameter("warm", False, "truth", "whether the pipes carried 1 MB before the run"),
    Parameter(
        "idle_s",
        0.0,
        "number",
        "how long warm pipes then rest; beyond a time-out of TCP their windows are small again",
        low=0,
        high=600,
        needs=(("warm", True),),
        noun="rest of the pipes",
    ),
    Parameter("proxies", None, "text", "folder of another rp and lp; unset: those built here"),
)
_TOPOLOGY = Parameter(
    "topology",
    None,
    "text",
    "last miles side by side; unset: as many as the preset has",
    ("one", "two"),
)
_OF_MILE = tuple(
    _unset(it)
    for it in (*MILE.values(), *SHORTHANDS.values(), *SECOND.values())
    if it.name != "seed"
)
# Unset where there is one server, as in folders from before there could be more.
_SERVERS = replace(SERVERS, default=None, help=f"{SERVERS.help}; unset: one")
LAB = (PRESET, _TOPOLOGY, *_OF_MILE, *WAN, _SERVERS, BOTTLENECK, LINK, CLIENT, *HOSTS)
COMMON = (
    Parameter(
        "way",
        "pipes",
        "text",
        "how the client reaches the server; haproxy: by a proxy that splits connections where rp "
        "would be",
        WAYS,
    ),
    replace(PIPES, default=8, low=0, help=f"{PIPES.help}; 0 is the direct way"),
    Parameter(
        "cc",
        "cubic",
        "text",
        "congestion control of pipes and of plain connections",
        noun="congestion control",
    ),
    *PROXIES,
    *LAB,
)
OF_PIPES = tuple(it.name for it in PROXIES)
OF_MILE = tuple(it.name for it in _OF_MILE)  # without a value: as the preset has it
_LAB_NAMES = tuple(it.name for it in LAB)
# What a preset is changed by.
UNCHANGED = {it.name: it.default for it in LAB}
CHANGES = (*OF_MILE, *(it.name for it in (*WAN, _SERVERS, *HOSTS)))


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


_TYPES = {"whole": int, "size": int, "number": float, "truth": bool, "text": str}
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
    if isinstance(value, str) and parameter.kind != "text":
        return read(parameter, value)
    if value is None and parameter.default is not None:
        raise ParameterError(parameter.name, "needs a value")
    parameter.check(value)
    return value if value is None else _TYPES[parameter.kind](value)


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
    if full["key"] and (full["extend"] == "never" or full["transport"] in ("sctp", "mixed")):
        raise ParameterError("key", "is of the extension, over TCP or MPTCP")
    if full["client"] == "vm" and full["bottleneck"] == "sender":
        raise ParameterError("client", "a virtual machine's own queue is not ours to limit")
    miles(full)
    if full.get("rssi") is not None:
        rssi.read(Path(str(full["rssi"])))
    return full


def _has_what_it_needs(parameter: Parameter, full: Params) -> bool:
    # Most need nothing, and all are asked for each configuration.
    return not parameter.needs or all(full[name] == value for name, value in parameter.needs)


def check_used(
    own: Iterable[Parameter], told: Iterable[Params], configurations: Sequence[Params]
) -> None:
    """Refuses a parameter that was told and applies to no configuration; where none has pipes, what
    is of pipes may be told all the same."""
    with_pipes = any(it["way"] == "pipes" for it in configurations)
    asked = {name for it in told for name, value in it.items() if value is not None}
    for it in by_name(own).values():
        unused = it.needs and all(params[it.name] is None for params in configurations)
        if it.name in asked and with_pipes and unused:
            raise ParameterError(it.name, f"goes with {needs(it)} only")


def needs(parameter: Parameter) -> str:
    """What other parameters must be for this one to apply, in words; empty: it always does."""
    return " and ".join(f"{name} {written(value)}" for name, value in parameter.needs)


def _place(full: dict[str, Value]) -> None:
    """Files are meant from where the command was given, also when it is resumed elsewhere."""
    for name in _FILES:
        told = full[name]
        if isinstance(told, str) and name in _TRACES:
            if traces.is_named(told):
                continue
            full[name] = str(Path(told).resolve())
        elif isinstance(told, str) and told.startswith("@"):
            full[name] = f"@{Path(told[1:]).resolve()}"
    if full.get("rssi") is not None:
        full["rssi"] = str(Path(str(full["rssi"])).resolve())
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
    told = {name: params[name] for name in OF_MILE if params.get(name) is not None}
    return _with_traces(told)


def _with_traces(told: dict[str, Any]) -> dict[str, Any]:
    """Files in place of the names of traces that are made here."""
    there = [name for name in _TRACES if name in told]
    return told | {
        name: str(traces.path_of(told[name], delay=name.endswith("delay_trace"))) for name in there
    }


def is_two(params: Params) -> bool:
    asked = params.get("topology")
    return asked == "two" if asked else len(miles_of(str(params["preset"]))) == 2


def miles(params: Params) -> tuple[Mile, ...]:
    """The last mile(s) of a configuration: the preset and what changes it."""
    changes = _changes(params)
    # Of a trace it is checked that the file is there: it may be gone when it is named again.
    make = _miles.__wrapped__ if changes.keys() & _TRACES else _miles
    return make(str(params["preset"]), is_two(params), **changes)


@lru_cache(maxsize=1024, typed=True)  # 1 and 1.0 are not alike where they are written
def _miles(preset: str, two: bool, **changes: Any) -> tuple[Mile, ...]:
    """To check them takes long, and most configurations of a sweep have the same."""
    return two_miles(preset, **changes) if two else (one_mile(preset, **changes),)


def lab_parameters(params: Params) -> dict[str, Any]:
    """Those that topologies.topos takes."""
    found = {name: params[name] for name in _LAB_NAMES if params.get(name) is not None}
    found.pop("topology", None)
    return _with_traces(found)
