# SPDX-License-Identifier: MIT
"""What a parameter is. Each is written once, with its range, its unit and its words.

What is read from a command line, what --help, reports and README.md say of it and what is refused
are made from that. It needs no package but the standard library's: mn runs its own Python.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal

Value = int | float | str | bool | None
Params = Mapping[str, Value]
Kind = Literal["whole", "number", "size", "text", "truth"]

SHARE = "share"
# By the last word of a parameter's name.
UNITS = {"ms": "ms", "s": "s", "mbps": "Mbit/s", "bytes": "bytes", "packets": "packets"}
KINDS: dict[type, Kind] = {bool: "truth", int: "whole", float: "number", str: "text"}
# What is asked for where a parameter names no limit, but could not be measured in a lifetime.
MOST = {"size": 2**62, "whole": 10**6, "number": 10**6}


class ParameterError(ValueError):
    """A wrong parameter; the message starts with its name."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ParameterError(name, f"{value!r} is none of {', '.join(choices)}")


def unit_of(name: str) -> str:
    """The one that a name ends with; empty: a bare number, or a word."""
    first, _, last = name.rpartition("_")
    return UNITS.get(last, "") if first or last == "mbps" else ""


@dataclass(frozen=True)
class Parameter:
    """One value of it in each run or lab, any number in a sweep."""

    name: str
    default: Value
    kind: Kind
    help: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    needs: tuple[tuple[str, Value], ...] = ()  # where other parameters have other values: None
    unit: str = ""  # where its name does not end with it
    noun: str = ""  # of an axis of a plot; else its name, without the unit
    optional: bool = False  # None is a value of it: no limit

    def __post_init__(self) -> None:
        own = "bytes" if self.kind == "size" else unit_of(self.name)
        object.__setattr__(self, "unit", self.unit or own)
        named = self.name.rpartition("_")[0] if unit_of(self.name) else self.name
        object.__setattr__(self, "noun", self.noun or named.replace("_", " "))

    def check(self, value: Any) -> None:
        """Raises ParameterError. A number is one: what a command line says is to be read first."""
        if value is None and (self.optional or self.default is None):
            return
        if self.kind == "text":
            self._check_text(value)
        elif self.kind == "truth":
            if not isinstance(value, bool):
                raise ParameterError(self.name, f"{value!r} is neither yes nor no")
        else:
            self._check_number(value)

    def _check_text(self, value: Any) -> None:
        if self.choices:
            check_choice(self.name, value, self.choices)
        if value is None:
            raise ParameterError(self.name, "needs a value")

    def _check_number(self, value: Any) -> None:
        if value is None or isinstance(value, str | bool) or not -math.inf < value < math.inf:
            without = ", without its unit" if isinstance(value, str) else ""
            wanted = f" (wanted: {self.unit})" if self.unit else ""
            raise ParameterError(self.name, f"{value!r} is not a number{without}{wanted}")
        if self.kind != "number" and value != int(value):
            raise ParameterError(self.name, f"{value!r} is not a whole number")
        low = -math.inf if self.low is None else self.low
        high = MOST[self.kind] if self.high is None else self.high
        if not low <= value <= high:
            unit = "(a share: 2 % is 0.02)" if self.unit == SHARE else self.unit
            told = f"{value!r} is not from {low:g} to {high:g} {unit}".rstrip()
            raise ParameterError(self.name, told)

    def values(self) -> str:
        """What it may be, in words: `0 to 20000 ms`."""
        if self.choices:
            return ", ".join(self.choices)
        if self.kind == "truth":
            return "yes, no"
        unit = "" if self.unit == SHARE or self.kind == "size" else f" {self.unit}".rstrip()
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}{unit}"
        return f"from {self.low:g}{unit}" if self.low is not None else unit.strip()


def written(value: Value) -> str:
    """As on a command line; empty for None."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def declared(default: Value, help_: str, *, kind: Kind | None = None, **more: Any) -> Any:
    """A field of a dataclass that is a parameter; its kind is the default's."""
    told = {"kind": kind or KINDS[type(default)], "help": help_, **more}
    return field(default=default, metadata={"parameter": told})


@cache
def declared_by(cls: type) -> tuple[Parameter, ...]:
    """The parameters that a dataclass's fields declare, in their order."""
    return tuple(
        Parameter(it.name, it.default, **it.metadata["parameter"])
        for it in fields(cls)
        if "parameter" in it.metadata
    )


def check_all(of: Any) -> None:
    """Each parameter that an object's class declares. Raises ParameterError."""
    for parameter in declared_by(type(of)):
        parameter.check(getattr(of, parameter.name))
