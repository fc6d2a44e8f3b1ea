# SPDX-License-Identifier: MIT
"""Which configurations a sweep has: the union of an experiment's grids, overridden or not."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from experiments import parameters
from experiments.model import Experiment, Grid
from topologies.parameter import ParameterError, Params, Value

Overrides = Mapping[str, Sequence[Value]]
MOST_CONFIGURATIONS = 10_000


def axis(values: Any) -> tuple[Value, ...]:
    """One value is an axis, too."""
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    return tuple(values) if listed else (values,)


def points(grid: Grid) -> Iterator[dict[str, Value]]:
    axes = {name: axis(values) for name, values in grid.items()}
    count = math.prod(map(len, axes.values()))
    if count > MOST_CONFIGURATIONS:
        longest = max(axes, key=lambda name: len(axes[name]))
        raise ParameterError(
            longest,
            f"{len(axes[longest])} values make {count} configurations of one grid; "
            f"there may be {MOST_CONFIGURATIONS}",
        )
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _with_pipes(grid: Grid, pipes: Sequence[Value]) -> Grid:
    """A number of pipes acts where there are pipes; other ways are baselines and stay."""
    return {**grid, "pipes": tuple(pipes)} if "pipes" in axis(grid.get("way", "pipes")) else grid


def _by_way(chosen: list[dict[str, Value]], ways: Sequence[Value]) -> list[dict[str, Value]]:
    """Only these ways; one that the sweep has not takes the place of the pipes."""
    there = {point.get("way", "pipes") for point in chosen}
    found = [point for point in chosen if point.get("way", "pipes") in ways]
    model = [point for point in chosen if point.get("way", "pipes") == "pipes"] or chosen
    for way in ways:
        if way not in there:
            found += [{**point, "way": way} for point in model]
    return found


def configurations(
    experiment: Experiment, overrides: Overrides, *, quick: bool = False
) -> list[Params]:
    """Full sets of parameters, each once. Raises ParameterError."""
    rest = dict(overrides)
    pipes, ways = rest.pop("pipes", None), rest.pop("way", None)
    chosen: list[dict[str, Value]] = []
    for grid in (quick and experiment.quick_grids) or experiment.grids:
        full: Grid = {**grid, **rest}
        chosen += points(full if pipes is None else _with_pipes(full, pipes))
    if ways is not None:
        chosen = _by_way(chosen, ways)
    found: dict[tuple[Value, ...], Params] = {}
    for point in chosen:
        params = parameters.complete(experiment.parameters, point)
        if params["way"] not in experiment.ways:
            known = ", ".join(experiment.ways)
            raise ParameterError(
                "way", f"{params['way']!r} is not measured by {experiment.name}; there are {known}"
            )
        if params["client"] not in experiment.clients:
            raise ParameterError(
                "client",
                f"{params['client']!r} is not for {experiment.name}, whose programs run in a "
                f"{' or a '.join(experiment.clients)}",
            )
        found.setdefault(tuple(params.values()), params)
    # What the sweep itself sets may well have lost its use by what was told in its place.
    told = [{name: it} for name, values in overrides.items() for it in axis(values)]
    parameters.check_used(experiment.parameters, told or chosen, list(found.values()))
    return list(found.values())


def varying(configurations_: Sequence[Params]) -> list[str]:
    """The names of what is not the same in all of them, those apart to which it applies not."""

    def differs(name: str) -> bool:
        found = {it[name] for it in configurations_}
        return len(found - {None} if name in parameters.OF_PIPES else found) > 1

    return [name for name in configurations_[0] if differs(name)] if configurations_ else []
