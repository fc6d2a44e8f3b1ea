# SPDX-License-Identifier: MIT
"""How values, parameters and configurations are written for people."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from experiments import catalogue, parameters
from experiments.model import Metric
from topologies.parameter import SHARE, Parameter, Params, Value, unit_of

if TYPE_CHECKING:
    from experiments.statistics import Estimate

WAYS = {"direct": "direct", "mptcp": "MPTCP", "http2": "HTTP/2", "spdy": "SPDY", "quic": "QUIC"}
WAYS |= {"haproxy": "HAProxy"}
INFINITE = "\N{INFINITY}"
# Values of which a reader would have to look up what they stand for.
TOLD: dict[tuple[str, Value], str] = {
    ("warm", True): "warm pipes",
    ("warm", False): "fresh pipes",
    ("extend", "auto"): "extension",
    ("extend", "never"): "baseline",
    ("key", True): "with a key",
    ("key", False): "without a key",
    ("tls", True): "TLS",
    ("tls", False): "no TLS",
    ("protocol", "http1"): "HTTP/1.1",
    ("protocol", "http2"): "HTTP/2",
    ("bottleneck", "network"): "queue in the network",
    ("bottleneck", "sender"): "queue in the sender",
    ("direction", "both"): "both directions",
    ("trace_down", None): "constant rate",
    ("trace_up", None): "constant rate",
}
COUNTED = {"rivals": "rival", "plain": "plain connection", "readers": "reader"}


@cache
def known() -> dict[str, tuple[Parameter, ...]]:
    """The parameters of all experiments, some of which share a name; one that only old results
    have is none of them."""
    found: dict[str, list[Parameter]] = {}
    for it in (*parameters.by_name().values(), *_own()):
        found.setdefault(it.name, []).append(it)
    return {name: tuple(its) for name, its in found.items()}


def _own() -> list[Parameter]:
    return [it for each in catalogue.experiments() for it in each.parameters]


def parameter_of(name: str, it: Value = None) -> Parameter | None:
    """Of several of one name the first that such a value fits."""
    kinds = ("text",) if isinstance(it, str) else ("truth",) if isinstance(it, bool) else ()
    for each in known().get(name, ()):
        if it is None or (each.kind in kinds if kinds else each.kind not in ("text", "truth")):
            return each
    return None


def number(value: float, digits: int = 3) -> str:
    """Three digits that mean something, without an exponent."""
    if math.isnan(value):
        return "\N{EN DASH}"
    if math.isinf(value):
        return INFINITE if value > 0 else "-" + INFINITE
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(places, 6)}f}"
    if float(text) == 0:  # less than anybody measures, and without a sign
        return "0"
    return f"{float(text):,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}") if places == 0 else text


def brief(value: float) -> str:
    """In running text: 18, not 18.0."""
    return f"{value:.3g}" if value == 0 or 1e-3 <= abs(value) < 1e3 else number(value)


def ratio(value: float) -> str:
    """Two places: 0.31; three digits from 10 on; below 0.1 two digits: 0.026 is not 0.034."""
    if not math.isfinite(value) or value >= 10:
        return number(value)
    return f"{value:.2f}" if abs(value) >= 0.0995 or value == 0 else number(value, 2)


def measured_size(count: float) -> str:
    """Three digits: nobody compares pages by the byte."""
    return size(float(f"{count:.3g}"))


def span(got: "Estimate", write: Callable[[float], str] = number) -> str:
    return f"{write(got.low)} to {write(got.high)}"


def interval(got: "Estimate", write: Callable[[float], str] = number) -> str:
    """In brackets where it is merely the range of a few."""
    if got.n < 2:
        return ""
    return span(got, write) if got.enough else f"({span(got, write)})"


def repeated(sessions: int, low: str, high: str) -> str:
    """In place of an interval, where nothing is drawn at random and nothing is of another day."""
    some = "one session" if sessions == 1 else f"{sessions} sessions"
    return f"no interval; repeats of {some}, " + (f"{low} to {high}" if low != high else "alike")


def share(value: float) -> str:
    return f"{value * 100:g}\N{NO-BREAK SPACE}%"


def smallest_effect(metric: Metric) -> str:
    """What its experiment declares to matter."""
    least = [share(metric.matters)] if metric.matters else []
    if metric.matters_by is not None:
        unit = f"{metric.matters_by:g}\N{NO-BREAK SPACE}{metric.unit}".strip()
        least.append(f"{unit} where it may be near 0")
    return f"Smallest effect of interest: {', '.join(least)}." if least else ""


def size(count: float) -> str:
    """Decimal units, as on the command line; binary ones of what is round in them alone."""
    for unit, whole in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= whole and count % whole == 0 and count % 1000:
            return f"{count / whole:g}\N{NO-BREAK SPACE}{unit}"
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= scale:
            return f"{count / scale:g}\N{NO-BREAK SPACE}{unit}"
    return f"{count:g}\N{NO-BREAK SPACE}B"


def name(parameter: str, it: Value = None) -> str:
    told = parameter_of(parameter, it)
    return told.noun if told else parameter.replace("_", " ")


def unit(parameter: str, it: Value = None) -> str:
    """Of an axis; empty for a bare number or a word. `it`: one of the values on it."""
    found = parameter_of(parameter, it)
    told = found.unit if found else unit_of(parameter)
    return "%" if told == SHARE else told


def _is_size(parameter: str, it: Value) -> bool:
    told = parameter_of(parameter, it)
    return told.kind == "size" if told else unit_of(parameter) == "bytes"


def value(parameter: str, it: Value) -> str:
    """One value with its unit: 300 KB, 1 %, 50 ms."""
    if it is None:
        return "default"
    if isinstance(it, bool):
        return "yes" if it else "no"
    if isinstance(it, str):
        return it
    tail = unit(parameter, it)
    if tail == "%":
        return f"{it * 100:g}\N{NO-BREAK SPACE}%"
    if _is_size(parameter, it):
        return size(it)
    return f"{it:g}\N{NO-BREAK SPACE}{tail}" if tail else f"{it:g}"


def carried(params: Params) -> str:
    """How the bytes were carried: direct, 1 pipe, 8 pipes, MPTCP."""
    way, pipes = params.get("way", "pipes"), params.get("pipes")
    if way not in ("pipes", None):
        text = WAYS.get(str(way), str(way))
        return f"{text}, {count_of_pipes(pipes)}" if pipes else text
    if not pipes:
        return "direct" if pipes == 0 else "pipes"
    return count_of_pipes(pipes)


def count_of_pipes(pipes: Value) -> str:
    return "1 pipe" if pipes == 1 else f"{pipes} pipes"


def setting(parameter: str, it: Value) -> str:
    """A parameter's value where its name is not beside it."""
    if (parameter, it) in TOLD:
        return TOLD[parameter, it]
    if parameter in COUNTED and isinstance(it, int):
        return count(it, COUNTED[parameter]) if it else f"no {COUNTED[parameter]}"
    if parameter == "parallel":
        return f"{value(parameter, it)} at a time"
    if parameter == "idle_s":
        return f"idle for {value(parameter, it)}" if it else "just used"
    if parameter in ("preset", "size", "direction") or (parameter == "cc" and it is not None):
        return value(parameter, it)
    if parameter == "proxies":  # of a folder what tells it from others
        return f"proxies of {'/'.join(str(it).split('/')[-2:])}"
    if parameter == "binding":
        return f"{it} {name(parameter)}"
    if it is None and parameter in parameters.OF_MILE:
        return f"{name(parameter)} of the preset"
    return f"{name(parameter, it)} {value(parameter, it)}"


def word(parameter: str, it: Value) -> str:
    """A value that is no number, where its parameter's name is beside it."""
    return TOLD.get((parameter, it)) or value(parameter, it)


def label(params: Params, names: Sequence[str]) -> str:
    """A configuration by the parameters that matter: `8 pipes, 300 KB, lossy`."""
    parts = [carried(params)] if {"way", "pipes"} & set(names) else []
    parts += [
        setting(each, params[each])
        for each in names
        if each not in ("way", "pipes") and params.get(each) is not None
    ]
    return ", ".join(parts)


def settings(params: Params, names: Sequence[str]) -> str:
    """A configuration without how it is carried: `300 KB, lossy`."""
    return label(params, [each for each in names if each not in ("way", "pipes")])


def listed(parts: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def count(n: int, one: str, more: str = "") -> str:
    return f"{n} {one if n == 1 else more or one + 's'}"
