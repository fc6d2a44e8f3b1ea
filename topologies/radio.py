# SPDX-License-Identifier: MIT
"""A direction of a last mile that is a radio link, with a queue in the firmware below the device.

A model, linkem's alone: linkem/README.md says what of it was published and what is ours.
"""

import re
from typing import Any, Literal, Protocol

from topologies.parameter import ParameterError

Way = Literal["down", "up"]
LEVELS = (32, 64, 256)  # of a report: NR's short one, LTE's, NR's long one
GATE = re.compile(r"none|bytes:\d+|delay:\d+(\.\d+)?")
RANGE = r"(dscp|port):\d+(-\d+)?"
INTERACTIVE = re.compile(rf"none|{RANGE}(,{RANGE})*")
# Of a direction that is none.
OFF = {"grants": "none", "gate": "none", "host": "fifo"}


class Radio(Protocol):
    """What a last mile says of it; the parameters have their help in mile.py."""

    radio: str
    aqm: str
    gate: str
    host: str
    interactive: str
    firmware_kb: float
    grants_ms: float
    grant_delay_ms: float
    report_levels: int
    report_cap_kb: float
    telemetry_ms: float

    def direction(self, way: Way) -> Any: ...


def is_radio(mile: Radio, way: Way) -> bool:
    return mile.radio in (way, "both")


def check(mile: Radio) -> None:
    """What goes together with what. Raises ParameterError."""
    if not GATE.fullmatch(mile.gate):
        raise ParameterError("gate", f"{mile.gate!r} is none of none, bytes:N, delay:MS")
    if not INTERACTIVE.fullmatch(mile.interactive):
        raise ParameterError(
            "interactive", f"{mile.interactive!r} is neither none nor like dscp:46,port:53"
        )
    if mile.report_levels not in LEVELS:
        told = ", ".join(map(str, LEVELS))
        raise ParameterError("report_levels", f"{mile.report_levels} is none of {told}")
    for name in ("gate", "host"):
        if mile.radio == "none" and getattr(mile, name) != OFF[name]:
            raise ParameterError(name, "needs a radio: up, down or both")
    if mile.radio == "both" and mile.aqm != "tail":
        raise ParameterError("aqm", f"of links without a radio; of both radios: host={mile.aqm}")
    for way in ("down", "up"):
        if is_radio(mile, way):
            _check_room(mile, way)


def check_bottleneck(mile: Radio) -> None:
    """Of one whose rate and queue are the sender's own device. Raises ParameterError."""
    if mile.radio != "none":
        raise ParameterError("radio", "rate and queue are the link's: needs bottleneck network")


def _check_room(mile: Radio, way: Way) -> None:
    mbps = mile.direction(way).mbps
    if mbps is None and mile.direction(way).trace is None:
        raise ParameterError("radio", f"needs a rate or a trace {way}")
    kind, _, limit = mile.gate.partition(":")
    waits_kb = 0.0
    if kind == "bytes":
        waits_kb = float(limit) / 1e3
    elif kind == "delay" and mbps is not None:
        waits_kb = float(limit) * mbps / 8
    if waits_kb > mile.firmware_kb:
        raise ParameterError(
            "gate",
            f"{waits_kb:g} KB {way} are more than the firmware has room for: {mile.firmware_kb:g}",
        )


def words(mile: Radio, way: Way) -> dict[str, str]:
    """In linkem's words. The queue in front of the gate is the direction's own."""
    if not is_radio(mile, way):
        return OFF
    return {
        "grants": f"{mile.grants_ms:.12g}ms,delay={mile.grant_delay_ms:.12g}ms",
        "gate": mile.gate,
        "host": mile.host,
        "firmware_kb": f"{mile.firmware_kb:.12g}",
        "report_levels": f"{mile.report_levels},cap={mile.report_cap_kb:.12g}KB",
        "telemetry_ms": f"{mile.telemetry_ms:.12g}",
        "interactive": mile.interactive,
        "aqm": "tail",
    }


def ranges(text: str) -> set[tuple[str, int]]:
    """All that is interactive, one by one, however it was written."""
    found = set()
    for part in text.split(",") if text != "none" else ():
        kind, _, numbers = part.partition(":")
        first, _, last = numbers.partition("-")
        found |= {(kind, each) for each in range(int(first), int(last or first) + 1)}
    return found
