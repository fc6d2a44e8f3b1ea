# SPDX-License-Identifier: MIT
"""The experiments, one a file of this folder; found by their names."""

import importlib
import pkgutil
from functools import cache
from typing import Any

from experiments import definition
from experiments.model import Experiment


class UnknownExperiment(ValueError):
    """The message lists those that there are."""


@cache
def _all() -> dict[str, Experiment]:
    found: dict[str, Experiment] = {}
    for module in pkgutil.iter_modules(__path__):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for value in vars(loaded).values():
            own = isinstance(value, type) and value.__module__ == loaded.__name__
            if own and issubclass(value, Experiment) and "name" in vars(value):
                assert value.name not in found, f"two experiments {value.name}"
                found[value.name] = value()
    return dict(sorted(found.items()))


def names() -> tuple[str, ...]:
    return tuple(_all())


def experiments() -> tuple[Experiment, ...]:
    return tuple(_all().values())


def find(name: str) -> Experiment:
    known = _all()
    if name not in known:
        raise UnknownExperiment(f"experiment {name!r}: there is none; there are {', '.join(known)}")
    return known[name]


def of(meta: dict[str, Any]) -> Experiment:
    """The experiment of a folder's meta.json, also one that a file defined."""
    defined = meta["plan"]["definition"]
    if defined:
        return definition.experiment(defined, find(defined["experiment"]))
    return find(meta["experiment"])
