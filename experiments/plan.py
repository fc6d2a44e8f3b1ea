# SPDX-License-Identifier: MIT
"""What is to be run, and in which order: blocks of every configuration once, each shuffled.

Repetition r of all configurations has the seed `seed` + r, so that they meet the same losses. Of an
experiment with units (pages) each has seeds of its own: the n-th packet would meet the same fate on
every page, and ten pages would be one draw of losses. The order within a block is random, so that a
machine's good and bad minutes fall on all alike. Runs that can share a lab stay together.

A plan may have several sessions, apart in time, of `reps` blocks each; blocks are numbered through.
"""

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from experiments import parameters, sweep
from topologies.parameter import Parameter, ParameterError, Params

MOST_RUNS = 100_000  # at 5 s each six days
MOST_SESSIONS = 1000
# Sessions, or repetitions, from which on an interval is for others, too (crossed.py): with two,
# Student's t is six times as wide as the normal distribution.
LEAST_ROUNDS = 3
LIMITS = {
    it.name: it
    for it in (
        Parameter("reps", 20, "whole", "of each configuration", low=1, high=MOST_RUNS),
        Parameter("sessions", 1, "whole", "apart in time", low=1, high=MOST_SESSIONS),
        Parameter("apart_s", 0.0, "number", "sessions", low=0, high=1e7, unit="seconds"),
        Parameter("seed", 1, "whole", "of repetition 0", low=0, high=2**62),
        Parameter("limit_s", 60.0, "number", "of a run", low=0.001, high=1e6, unit="seconds"),
    )
}

_OF_LAB = (
    *("preset", "topology", "mtu", "wan_mbps", "wan_rtt_ms", "bottleneck", "link"),
    "client",
)


@dataclass(frozen=True)
class Run:
    id: str
    params: Params
    seed: int
    rep: int  # and the block: each has every configuration once
    order: int  # within the block
    session: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "params": dict(self.params)}


@dataclass(frozen=True)
class Plan:
    experiment: str
    configurations: tuple[Params, ...]
    reps: int
    seed: int
    limit_s: float  # of a run
    quick: bool = False
    definition: dict[str, Any] | None = None  # of a sweep that a file defines
    units: tuple[str, ...] = ()  # parameters each value of which has seeds of its own
    sessions: int = 1
    apart_s: float = 0.0  # from the end of a session to the beginning of the next, at least

    def __post_init__(self) -> None:
        for name, limit in LIMITS.items():
            limit.check(getattr(self, name))
        if len(self) > MOST_RUNS:
            each = f"{self.reps}" + (f" in {self.sessions} sessions" if self.sessions > 1 else "")
            raise ParameterError(
                "reps",
                f"{each} of {len(self.configurations)} configurations are {len(self)} runs; "
                f"there may be {MOST_RUNS}",
            )

    @property
    def blocks(self) -> int:
        return self.reps * self.sessions

    def __len__(self) -> int:
        return len(self.configurations) * self.blocks

    @cached_property
    def varying(self) -> list[str]:
        return sweep.varying(self.configurations)

    def longer(self, reps: int | None, sessions: int | None, apart_s: float | None) -> "Plan":
        """With more repetitions, or with more sessions, of which those to come are `apart_s` apart.
        Those that it has stay what they are: where there are several sessions a block's number says
        of which it is."""
        for name, asked in (("reps", reps), ("sessions", sessions)):
            has = getattr(self, name)
            if asked is not None and asked < has:
                raise ParameterError(name, f"the plan has {has} of them already, not {asked}")
        more = sessions or self.sessions
        if reps not in (None, self.reps) and more > 1:
            raise ParameterError(
                "reps", f"each session has {self.reps}, as it began: more sessions are --sessions"
            )
        if more == 1 or apart_s is None:
            apart_s = self.apart_s
        return replace(self, reps=reps or self.reps, sessions=more, apart_s=apart_s)

    def runs(self) -> Iterator[Run]:
        for rep in range(self.blocks):
            yield from self.block(rep)

    def block(self, rep: int) -> Iterator[Run]:
        """Every configuration once."""
        for order, params in enumerate(self._shuffled(rep)):
            seed = self._seed(params, rep)
            yield Run(self._id(params, rep), params, seed, rep, order, rep // self.reps)

    def _seed(self, params: Params, rep: int) -> int:
        """Of a repetition, and of a unit where there are units."""
        own = [params[name] for name in self.units if params.get(name) is not None]
        return self.seed + rep + (int(digest({"unit": own}), 16) if own else 0)

    def _shuffled(self, rep: int) -> list[Params]:
        chance = random.Random(f"{self.seed} {rep}")
        shuffled = chance.sample(self.configurations, len(self.configurations))
        labs: dict[Any, list[Params]] = {}
        for params in shuffled:
            labs.setdefault(_lab_of(params), []).append(params)
        return [params for together in labs.values() for params in together]

    def _id(self, params: Params, rep: int) -> str:
        told = [_told(name, params[name]) for name in self.varying]
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(filter(None, told))).strip("-")[:60]
        return "-".join(part for part in (f"{rep:03d}", slug, digest(params)) if part)

    def as_dict(self) -> dict[str, Any]:
        """For json; what decides whether two plans are the same."""
        return {
            "experiment": self.experiment,
            "reps": self.reps,
            "seed": self.seed,
            "limit_s": self.limit_s,
            "quick": self.quick,
            "definition": self.definition,
            "units": list(self.units),
            "sessions": self.sessions,
            "apart_s": self.apart_s,
            "axes": {name: _values(self.configurations, name) for name in self.varying},
            "configurations": [dict(params) for params in self.configurations],
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> "Plan":
        """A folder from before units had seeds of their own goes on with those that it has."""
        names = ("experiment", "reps", "seed", "limit_s", "quick", "definition")
        return cls(
            **{name: told[name] for name in names},
            configurations=tuple(told["configurations"]),
            units=tuple(told.get("units", ())),
            sessions=told.get("sessions", 1),
            apart_s=told.get("apart_s", 0.0),
        )


def _lab_of(params: Params) -> tuple[Any, ...]:
    own = (parameters.is_two(params), params.get("servers"))
    return (*own, *(params[name] for name in _OF_LAB[2:]))


def _values(configurations: Sequence[Params], name: str) -> list[Any]:
    return list(dict.fromkeys(params[name] for params in configurations))


def _told(name: str, value: Any) -> str:
    """Of a run's name; what goes without saying is left out."""
    if value is None or (name, value) in (("way", "pipes"), ("pipes", 0)):
        return ""
    if isinstance(value, bool):
        return name if value else f"not-{name}"
    return value if isinstance(value, str) else f"{name}-{value}"


def digest(params: Mapping[str, Any]) -> str:
    """The same for the same parameters."""
    text = json.dumps(params, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
