# SPDX-License-Identifier: MIT
"""Whether a run's parameters are those that a claim or a plot asks for, presets included."""

from collections.abc import Iterable
from functools import lru_cache

from topologies.mile import BOTH
from topologies.parameter import Params, Value
from topologies.presets import PRESETS, miles_of


def spelled(where: Params) -> dict[str, Value]:
    """`where` with the shorthands of both directions, and what they stand for."""
    full = dict(where)
    for short, names in BOTH.items():
        if short in where:
            full.update(dict.fromkeys(names, where[short]))
    return full


def matches(params: Params, where: Params) -> bool:
    """What a folder's runs did not know yet was not there: no rival in a folder from before. What
    was left to the preset has the preset's value."""
    for name, value in where.items():
        there = params.get(name)
        if there is not None:
            if there != value:
                return False
            continue
        names = (name,) if name in params else BOTH.get(name, (name,))
        if any(params[one] != value if one in params else value for one in names) and (
            value is None or _of_preset(params, name) != value
        ):
            return False
    return True


def is_swept(params: Params, name: str, values: Iterable[Value]) -> bool:
    """Whether a run has one of these values, or that of its preset where one of them is to leave it
    to that. What does not apply to it is none."""
    value = params.get(name)
    if value is None:
        return True
    left = {**params, name: None}
    return any(it == value or (it is None and _of_preset(left, name) == value) for it in values)


def _of_preset(params: Params, name: str) -> Value:
    """What a preset of one last mile says, alike both ways; None where something else decides."""
    short = next((it for it, names in BOTH.items() if name in names), name)
    decide = (name, short, *BOTH.get(name, ()), "topology", "trace_down", "trace_up")
    preset = params.get("preset")
    if preset not in PRESETS or any(params.get(it) is not None for it in decide):
        return None
    return _preset_value(str(preset), name)


@lru_cache(maxsize=1024)
def _preset_value(preset: str, name: str) -> Value:
    miles = miles_of(preset)
    values = {getattr(miles[0], it, None) for it in BOTH.get(name, (name,))}
    return values.pop() if len(miles) == len(values) == 1 else None
