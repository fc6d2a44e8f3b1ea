# SPDX-License-Identifier: MIT
"""What is to be run, and in which order: blocks of every configuration once, each shuffled.

Repetition r of all configurations has the seed `seed` + r, so that they meet the same losses; the
order within a block is random, so that a machine's good and bad minutes fall on all alike. Runs
that can share a lab stay together.
"""

import hashlib
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from experiments import parameters, sweep
from topologies.parameter import Parameter, ParameterError, Params

MOST_RUNS = 100_000  # at 5 s each six days
LIMITS = {
    it.name: it
    for it in (
        Parameter("reps", 20, "whole", "of each configuration", low=1, high=MOST_RUNS),
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

    def __post_init__(self) -> None:
        for name, limit in LIMITS.items():
            limit.check(getattr(self, name))
        wanted = len(self.configurations) * self.reps
        if wanted > MOST_RUNS:
            raise ParameterError(
                "reps",
                f"{self.reps} of {len(self.configurations)} configurations are {wanted} runs; "
                f"there may be {MOST_RUNS}",
            )

    def __len__(self) -> int:
        return len(self.configurations) * self.reps

    @cached_property
    def varying(self) -> list[str]:
        return sweep.varying(self.configurations)

    def runs(self) -> Iterator[Run]:
        for rep in range(self.reps):
            yield from self.block(rep)

    def block(self, rep: int) -> Iterator[Run]:
        """Every configuration once."""
        for order, params in enumerate(self._shuffled(rep)):
            yield Run(self._id(params, rep), params, self.seed + rep, rep, order)

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
            "axes": {name: _values(self.configurations, name) for name in self.varying},
            "configurations": [dict(params) for params in self.configurations],
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> "Plan":
        names = ("experiment", "reps", "seed", "limit_s", "quick", "definition")
        return cls(
            **{name: told[name] for name in names}, configurations=tuple(told["configurations"])
        )


def _lab_of(params: Params) -> tuple[Any, ...]:
    return (parameters.is_two(params), *(params[name] for name in _OF_LAB[2:]))


def _values(configurations: Sequence[Params], name: str) -> list[Any]:
    return list(dict.fromkeys(params[name] for params in configurations))


def _told(name: str, value: Any) -> str:
    """Of a run's name; what goes without saying is left out."""
    if value is None or (name, value) in (("way", "pipes"), ("pipes", 0)):
        return ""
    if isinstance(value, bool):
        return name if value else f"not-{name}"
    return value if isinstance(value, str) else f"{name}-{value}"


def digest(params: Params) -> str:
    """The same for the same parameters."""
    text = json.dumps(params, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
