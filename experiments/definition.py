# SPDX-License-Identifier: MIT
"""A sweep defined by a file, without code: an existing experiment with grids of its own.

    experiment = "download"      the one that measures
    name = "loss-rtt"            of the results' folder; by default the file's name
    title, question, reps        in place of the experiment's
    [[grid]]                     parameters with a value or a list of them; grids add up
    [[figure]]                   as in experiments/model.py; none: the default ones

Values are written as on the command line ("300KB", "1%") or as numbers.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from experiments import parameters, sweep
from experiments.model import Experiment, Figure, Grid
from experiments.plan import MOST_RUNS
from topologies.parameter import ParameterError

_TEXTS = ("experiment", "name", "title", "question")
_KEYS = (*_TEXTS, "reps", "grid", "figure")


class DefinitionError(ValueError):
    """A wrong file; the message names it and what is wrong."""


def read(path: Path) -> dict[str, Any]:
    """The file's contents, its form checked."""
    try:
        found = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise DefinitionError(f"{path}: no such file") from None
    except (OSError, ValueError) as why:
        raise DefinitionError(f"{path}: {why}") from None
    found.setdefault("name", path.stem)
    try:
        _check(found)
    except DefinitionError as why:
        raise DefinitionError(f"{path}: {why}") from None
    return found


def _check(found: dict[str, Any]) -> None:
    for key in found:
        if key not in _KEYS:
            raise DefinitionError(f"{key}: no such key; there are {', '.join(_KEYS)}")
    for key in _TEXTS:
        if key in found and not isinstance(found[key], str):
            raise DefinitionError(f"{key}: {found[key]!r} is no text")
    if "experiment" not in found:
        raise DefinitionError("experiment: which one is to measure?")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", found["name"]):
        raise DefinitionError(f"name: {found['name']!r} is not made of a-z, 0-9 and -")
    reps = found.get("reps", 1)
    if not isinstance(reps, int) or isinstance(reps, bool) or not 1 <= reps <= MOST_RUNS:
        raise DefinitionError(f"reps: {reps!r} is no whole number from 1 to {MOST_RUNS}")
    for key in ("grid", "figure"):
        tables = found.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(it, dict) for it in tables):
            raise DefinitionError(f"{key}: write [[{key}]]")
    if not found.get("grid"):
        raise DefinitionError("grid: there is no [[grid]], so nothing to run")


def _grid(base: Experiment, told: Mapping[str, Any]) -> Grid:
    known = parameters.by_name(base.parameters)
    grid = {}
    for name, values in told.items():
        if name not in known:
            raise parameters.unknown(name, known)
        grid[name] = tuple(parameters.checked(known[name], it) for it in sweep.axis(values))
        if not grid[name]:
            raise ParameterError(name, "has no value")
    return grid


def _figure(told: Mapping[str, Any]) -> Figure:
    known = [it.name for it in fields(Figure)]
    for key in told:
        if key not in known:
            raise DefinitionError(f"figure: {key}: no such key; there are {', '.join(known)}")
    try:
        made = Figure(**told)
    except TypeError as why:
        raise DefinitionError(f"figure: {why}") from None
    kinds = get_args(get_type_hints(Figure)["kind"])
    if made.kind not in kinds:
        raise DefinitionError(f"figure: kind {made.kind!r} is none of {', '.join(kinds)}")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", made.name):
        raise DefinitionError(f"figure: name {made.name!r} is not made of a-z, 0-9 and -")
    return made


def check_figures(made: Experiment) -> None:
    """Whether each figure names what the runs will have: what it does not find it does not draw,
    and that would be seen when all runs are over. A folder of results is not asked: it may be from
    when a metric had another name."""
    settings = parameters.by_name(made.parameters)
    metrics = ["completion_s", *(it.name for it in made.metrics)]
    for figure in made.figures:
        axes = {"hue": figure.hue, "facet": figure.facet}
        if figure.kind != "series":  # whose y is whatever list the runs tell
            axes["y"] = figure.y
        if figure.kind != "ccdf":  # nor is its x a metric
            axes["x"] = figure.x
        if figure.floor != "floor_s":  # which is each experiment's own
            axes["floor"] = figure.floor
        for key, name in axes.items():
            may = () if key in ("y", "floor") else settings
            if name and name not in (*metrics, *may):
                raise DefinitionError(
                    f"figure {figure.name}: {key}: {name!r} is no metric"
                    f"{' and no parameter' if may else ''}; "
                    f"metrics are {', '.join(dict.fromkeys(metrics))}"
                )
        for key, chosen in (("where", figure.where), ("over", figure.over)):
            for name in chosen:
                if name not in settings:
                    raise DefinitionError(f"figure {figure.name}: {key}: {name!r} is no parameter")


def experiment(found: dict[str, Any], base: Experiment) -> Experiment:
    """`base` with the grids, figures and words of the file, or of a folder of its results."""
    _check(found)
    words = {key: found[key] for key in ("name", "title", "question", "reps") if key in found}
    if "reps" in found:
        words["quick_reps"] = found["reps"]
    members = words | {
        "grids": tuple(_grid(base, told) for told in found["grid"]),
        "quick_grids": (),
        "figures": tuple(_figure(told) for told in found.get("figure", [])),
        "claims": (),
        "notes": (),
        "definition": found,
    }
    return type(base.__class__.__name__, (type(base),), members)()
