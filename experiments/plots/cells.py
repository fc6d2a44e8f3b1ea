# SPDX-License-Identifier: MIT
"""What a figure shows, without drawing: panels of lines of points, each with its interval.

What is swept but named by no axis of the figure makes panels or lines of its own. A point is one
configuration: what nobody measured is not drawn. Two things only are taken together, and the
caption says so: the units that an experiment draws from many, such as pages; and in a
distribution, where each step is a run, what would make too many panels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from experiments.model import Claim, Figure, Metric
from experiments.plots.looks import ORDERED, Look, dash_of, of_carried, of_values
from experiments.report import words
from experiments.report.beside import CARRIED, like
from experiments.report.data import OF_PIPES, Results, follows, sortable
from experiments.report.runs import Configuration
from experiments.statistics import Drawn, Estimate, grouped, ratio
from topologies.parameter import Parameter, Params, Value

SPREAD = ("cdf", "ccdf")  # distributions: their metric is on the x axis
TOGETHER = 8  # more panels than this that no axis asked for become one, if they may


class Mixed(AssertionError):
    """A point of several configurations that nobody asked to be taken together."""


@dataclass(frozen=True)
class Point:
    x: Value
    got: Estimate
    values: tuple[float, ...]
    of: tuple[Configuration, ...] = ()
    published: tuple[float, ...] = ()  # of just these runs


@dataclass(frozen=True)
class Line:
    label: str
    look: Look
    points: tuple[Point, ...]
    baseline: bool = False  # not on the x axis: a level
    published: tuple[float, ...] = ()  # of all of its points together


@dataclass(frozen=True)
class Panel:
    label: str
    lines: tuple[Line, ...]
    floor: tuple[tuple[Value, float], ...] = ()
    along: str = ""  # what else differs from panel to panel, and goes with the label


@dataclass(frozen=True)
class Scene:
    figure: Figure
    panels: tuple[Panel, ...]
    metric: Metric
    together: tuple[str, ...] = field(default=())  # parameters whose values were mixed


def values_of(results: Results, name: str) -> tuple[Value, ...]:
    """All values of a parameter in the folder, in order: so that each keeps its colour."""
    return tuple(sorted({it.params.get(name) for it in results.configurations}, key=sortable))


def in_order(results: Results, name: str, found: set[Value]) -> list[Value]:
    """Along an axis: words as their parameter lists them, if it does."""
    told = _parameter(results, name, next((it for it in found if it is not None), None))
    listed = told.choices if told and found <= {None, *told.choices} else ()
    return sorted(
        found, key=lambda it: (listed.index(str(it)) if it in listed else -1, sortable(it))
    )


def _parameter(results: Results, name: str, value: Value = None) -> Parameter | None:
    """The experiment's, where others have one of this name, too."""
    own = {it.name: it for it in results.experiment.parameters}
    return own.get(name) or words.parameter_of(name, value)


def on_axis(results: Results, figure: Figure) -> bool:
    """Whether x is a metric, so that each configuration has a place of its own."""
    return bool(figure.x) and not any(figure.x in it.params for it in results.configurations)


def differing(results: Results, figure: Figure, used: set[str]) -> list[str]:
    """What varies among the runs of a figure and has no axis yet."""
    chosen = results.shown(figure.where)
    return [
        name
        for name in results.varying
        if name not in used and len({it.params.get(name) for it in chosen} - {None}) > 1
    ]


def hue_names(results: Results, figure: Figure) -> tuple[str, ...]:
    """The parameters that tell lines apart: the figure's, and how the pipes work."""
    names = [figure.hue] if figure.hue else []
    across = figure.kind in ("against", "normalised")
    covered = {*names, figure.facet, *([figure.x] if across else [])}
    if not covered & set(CARRIED) and set(CARRIED) & set(results.varying):
        names.append("pipes")
    if figure.kind != "heat":
        names += [it for it in differing(results, figure, {*covered, *names}) if it in OF_PIPES]
    return tuple(names)


def facet_names(results: Results, figure: Figure) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters that tell panels apart, and those that are taken together."""
    own = (figure.facet,) if figure.facet else ()
    used = {*own, *hue_names(results, figure), *CARRIED}
    if figure.kind not in (*SPREAD, "series"):
        used.add(figure.x)
        if on_axis(results, figure):
            return own, ()
    chosen = results.shown(figure.where)
    left = differing(results, figure, used)
    if figure.kind in ("against", "normalised"):  # along x it needs no name
        along = [it.params.get(figure.x) for it in chosen]
        left = [it for it in left if not follows([of.params.get(it) for of in chosen], [along])]
    units = [name for name in left if name in results.experiment.units]
    if figure.kind in SPREAD:  # of one unit there are few runs, and they are no distribution
        left, may = [name for name in left if name not in units], left
    else:
        may = units
    left.sort(key=lambda name: (name in may, len({it.params.get(name) for it in chosen})))
    for k in range(len(left), 0, -1):
        few = len({Results.key(it.params, left[:k]) for it in chosen}) <= TOGETHER
        if few or left[k - 1] not in may:
            together = [*left[k:], *(name for name in units if name not in left)]
            return (*own, *left[:k]), tuple(together)
    return own, tuple(dict.fromkeys((*left, *units)))


def apart(
    results: Results, figure: Figure, facets: Sequence[str], free: Sequence[str]
) -> tuple[str, ...]:
    """What configurations still differ in that would be one point; it tells lines apart, too.

    None is a value like any other here: a buffer that is left to the kernel is another one."""
    hues = hue_names(results, figure)
    of_units = on_axis(results, figure) and results.experiment.units  # a line has each once
    points: dict[tuple[Any, ...], list[Configuration]] = {}
    for it in results.shown(figure.where):
        there = results.key(it.params, of_units) if of_units else place(it, figure, results)
        line = line_look(results, it.params, hues)[0]
        key = (tuple(_facet(it, name) for name in facets), line, there)
        points.setdefault(key, []).append(it)
    return tuple(
        name
        for name in results.varying
        if name not in (*free, *hues)
        and any(len({repr(it.params.get(name)) for it in its}) > 1 for its in points.values())
    )


def metric_of(results: Results, figure: Figure) -> Metric:
    """A distribution has its metric on the x axis; some name it so."""
    named = {metric.name for metric in results.experiment.metrics} | {"completion_s"}
    return results.metric(figure.x if figure.kind == "cdf" and figure.x in named else figure.y)


def facet_label(results: Results, params: Params, names: Sequence[str]) -> str:
    parts = [words.carried(params)] if set(names) & set(CARRIED) else []
    parts += [
        words.setting(name, params.get(name))
        for name in names
        if name not in CARRIED and (params.get(name) is not None or _is_left(results, params, name))
    ]
    return ", ".join(parts)


def _is_left(results: Results, params: Params, name: str) -> bool:
    """Whether a parameter without a value applies: it is left to the preset or to the kernel."""
    told = _parameter(results, name)
    if name not in params or told is None:
        return False
    if name in OF_PIPES and params.get("way", "pipes") != "pipes":
        return False
    return all(params.get(other) == value for other, value in told.needs)


def tell_apart(
    keys: Iterable[tuple[Value, ...]], names: Sequence[str], first: Sequence[str] = ()
) -> tuple[str, ...]:
    """As few of the names as tell the keys apart, `first` in any case. The others follow."""
    distinct = set(keys)
    columns = dict(zip(names, zip(*distinct, strict=True), strict=True)) if distinct else {}
    kept = list(names)
    for name in sorted(reversed(names), key=lambda it: len(set(columns.get(it, ())))):
        rest = [columns[it] for it in kept if it != name]
        if name not in first and len(set(zip(*rest, strict=True))) == len(distinct):
            kept.remove(name)
    return tuple(kept)


def line_look(
    results: Results, params: Params, names: Sequence[str], several: bool = True
) -> tuple[str, Look]:
    """A line's name and look: by how it was carried, by a parameter, or by both, if the figure
    has several of each."""
    carried = words.carried(params)
    others = [name for name in names if name not in CARRIED]
    without = params.get("way", "pipes") != "pipes"
    if not others:
        return (carried, of_carried(carried)) if names or without else ("", of_carried("8 pipes"))
    own = [params.get(name) for name in others]
    if own[0] is None and without:  # does not apply to it: named by how it is carried
        return carried, of_carried(carried)
    text = ", ".join(
        words.setting(name, value)
        for name, value in zip(others, own, strict=True)
        if value is not None or name == others[0]
    )
    if len(others) == 1:
        told = words.parameter_of(others[0], own[0])
        values = values_of(results, others[0])
        look = of_values(others[0], values, told.choices if told else ())[own[0]]
    else:
        looks = results.once(("looks", *others), lambda: _looks_of_several(results, others))
        look = looks[tuple(own)]
    look = Look(look.colour, look.marker, dash_of(carried))
    if without or set(names) & set(CARRIED):
        by = of_carried(carried) if len(others) == 1 and several else look
        return f"{carried}, {text}", Look(look.colour, by.marker, look.dash)
    return text, look


def _looks_of_several(results: Results, names: Sequence[str]) -> dict[tuple[Value, ...], Look]:
    """The first line of a value has the look that this value has elsewhere: late is late."""
    every = {results.key(it.params, names) for it in results.configurations}
    ordered = sorted(every, key=lambda key: [sortable(value) for value in key])
    told = words.parameter_of(names[0])
    own = of_values(names[0], values_of(results, names[0]), told.choices if told else ())
    firsts = {key[0]: key for key in reversed(ordered)}
    taken = {own[value] for value in firsts}
    others = [look for look in ORDERED if look not in taken] or list(ORDERED)
    rest = [key for key in ordered if firsts[key[0]] != key]
    return {
        **{key: own[value] for value, key in firsts.items()},
        **{key: others[k % len(others)] for k, key in enumerate(rest)},
    }


def measured(results: Results, it: Configuration, figure: Figure, metric: Metric) -> list[Drawn]:
    """The values of a point: the runs', or their ratios to the runs that they are paired with."""
    if not figure.over:
        return results.drawn(it, metric) if it.estimate(metric).n else []
    of, over = _divisor(results, it, figure)
    setting = Results.key(it.params, results.varying)
    pairs = results.pairs(of, over, metric)
    if len(pairs) > len(it.runs) and len({run.seed for run in it.runs}) == len(it.runs):
        raise Mixed(f"{figure.name}: {dict(of)} is divided by more than one configuration")
    return [replace(pair.drawn(ratio), setting=setting) for pair in pairs]


def _divisor(results: Results, it: Configuration, figure: Figure) -> tuple[Params, Params]:
    """A configuration, and what chooses the one that it is divided by."""
    over = dict(figure.over)
    if over.get("pipes") and "way" in it.params:
        over.setdefault("way", "pipes")
    of = {name: it.params.get(name) for name in (*results.varying, *over) if name in it.params}
    return of, like(results, of, over)


def x_of(it: Configuration, figure: Figure, results: Results) -> Value:
    """A parameter's value, or the median of a metric."""
    if figure.x in it.params or not figure.x:
        return it.params.get(figure.x)
    got = it.estimate(results.metric(figure.x))
    return got.median if got.n else None


def place(it: Configuration, figure: Figure, results: Results) -> Any:
    """Where a configuration stands in its panel; those of one place and line are one point."""
    if figure.kind in SPREAD:
        return None
    if _is_level(results, it, figure):
        return "level"
    x = x_of(it, figure, results)
    return (x, id(it)) if on_axis(results, figure) else (x, None)


def _is_level(results: Results, it: Configuration, figure: Figure) -> bool:
    """Whether it has no place on the axis: that is about pipes, of which it has none, or is a
    parameter that does not apply to it."""
    if figure.kind not in ("against", "normalised"):
        return False
    if it.params.get("way", "pipes") != "pipes":
        return figure.x in (*CARRIED, *OF_PIPES)
    own = {each.name: each for each in results.experiment.parameters}
    needs = own[figure.x].needs if figure.x in own else ()
    return any(it.params.get(name) != value for name, value in needs)


def scene(results: Results, figure: Figure) -> Scene:
    """Raises Mixed."""
    metric = metric_of(results, figure)
    names, together = facet_names(results, figure)
    free = (*together, *(results.experiment.units if on_axis(results, figure) else ()))
    hues = hue_names(results, figure)
    if figure.kind not in ("heat", "series"):  # a map has cells, a series one run
        hues += apart(results, figure, names, free)
    panels: dict[tuple[Value, ...], list[Configuration]] = {}
    everywhere: list[tuple[tuple[Value, ...], Configuration]] = []
    for it in results.shown(figure.where):
        key = tuple(_facet(it, name) for name in names)
        if None in key and it.params.get("way", "pipes") != "pipes":
            everywhere.append((key, it))
        else:
            panels.setdefault(key, []).append(it)
    for key, it in everywhere:  # a baseline stands in each panel that it can be compared with
        alike = [its for other, its in panels.items() if _fits(key, other)]
        for its in alike or [panels.setdefault(key, [])]:
            its.append(it)
    telling = tell_apart(panels, names, (figure.facet,))
    along = [name for name in names if name not in telling]
    made = tuple(
        Panel(
            label,
            lines(results, figure, metric, its, hues, free),
            floor(results, figure, its),
            small,
        )
        for its in panels.values()
        for label, small in [titles(results, its[0].params, telling, along)]
    )
    if figure.over:
        made = tuple(it for it in made if has_pairs(it)) or made
    return Scene(figure, made, metric, together)


def has_pairs(panel: Panel) -> bool:
    """False: of its runs none is paired with one that it could be divided by."""
    return any(point.values for line in panel.lines for point in line.points)


def titles(
    results: Results, params: Params, telling: Sequence[str], along: Sequence[str]
) -> tuple[str, str]:
    """A panel's name, and what goes with it in small letters. What tells others apart may not
    apply here: then the panel is called by what goes with it."""
    large, small = (facet_label(results, params, names) for names in (telling, along))
    return (large, small) if large else (small, "")


def _facet(it: Configuration, name: str) -> Value:
    """None: a facet that says nothing of a run without pipes."""
    if name in CARRIED:
        return words.carried(it.params) if it.params.get("way", "pipes") == "pipes" else None
    return it.params.get(name)


def _fits(key: tuple[Value, ...], other: tuple[Value, ...]) -> bool:
    return all(mine in (None, its) for mine, its in zip(key, other, strict=True))


def lines(
    results: Results,
    figure: Figure,
    metric: Metric,
    its: Sequence[Configuration],
    names: Sequence[str],
    free: Sequence[str],
) -> tuple[Line, ...]:
    found: dict[tuple[str, bool], tuple[Look, dict[Any, list[Configuration]]]] = {}
    several = len({words.carried(it.params) for it in results.shown(figure.where)}) > 1
    for it in its:
        label, look = line_look(results, it.params, names, several)
        baseline = _is_level(results, it, figure)
        if baseline:
            carried = words.carried(it.params)
            colour = look.colour if names else of_carried(carried).colour
            marker = look.marker if it.params.get("way", "pipes") == "pipes" else ""
            look = Look(colour, marker, dash_of(carried))
        there = place(it, figure, results)
        found.setdefault((label, baseline), (look, {}))[1].setdefault(there, []).append(it)
    made = []
    for (label, baseline), (look, by_place) in found.items():
        points = [
            _point(results, figure, metric, by_place[there], free)
            for there in sorted(by_place, key=_along)
        ]
        every = [it for its in by_place.values() for it in its]
        whole = published(results, figure, metric, every) if len(points) > 1 else ()
        made.append(Line(label, look, tuple(points), baseline, whole))
    return tuple(made)


def published(
    results: Results, figure: Figure, metric: Metric, its: Sequence[Configuration]
) -> tuple[float, ...]:
    """What was published of these configurations, and of no others, in the figure's terms."""
    ours = runs_of(its)
    statistic = "pooled" if metric.pooled else "median"
    found: list[float | None] = []
    for claim in results.experiment.claims:
        if claim.metric != metric.name or claim.statistic != statistic or claim.is_difference:
            continue
        sides = [claim.of] if claim.over is None else [claim.of, claim.over]
        told = results.asked(claim)
        same = [runs_of(told.select(side)) == ours for side in sides]
        if same[0] and _same_divisor(results, figure, claim, its):
            found.append(claim.paper)
        elif not figure.over and claim.over is not None:
            found += [it for it, is_ours in zip(claim.paper_sides, same, strict=True) if is_ours]
    return tuple(dict.fromkeys(it for it in found if it is not None))


def runs_of(its: Iterable[Configuration]) -> set[str]:
    """By which two choices of configurations are told to be the same."""
    return {run.id for it in its for run in it.runs}


def _same_divisor(
    results: Results, figure: Figure, claim: Claim, its: Sequence[Configuration]
) -> bool:
    if not figure.over or claim.over is None:
        return not figure.over and claim.over is None
    theirs = runs_of(results.asked(claim).select(claim.over))
    ours = [_divisor(results, it, figure)[1] for it in its]
    return runs_of(each for over in ours for each in results.select(over)) == theirs


def _along(there: Any) -> Any:
    return sortable(there[0]) if isinstance(there, tuple) else (0, 0.0, "")


def _point(
    results: Results,
    figure: Figure,
    metric: Metric,
    its: Sequence[Configuration],
    free: Sequence[str],
) -> Point:
    if figure.kind not in ("heat", "series"):
        apart = [name for name in results.varying if name not in free]
        if len({results.key(it.params, apart) for it in its}) > 1:
            raise Mixed(f"{figure.name}: one point of {[dict(it.params) for it in its]}")
    level = figure.kind in SPREAD or _is_level(results, its[0], figure)
    x = None if level else x_of(its[0], figure, results)
    values = [v for it in its for v in measured(results, it, figure, metric)]
    pooled = metric.pooled and len(its) == 1 and not figure.over
    return Point(
        x,
        its[0].estimate(metric) if pooled else grouped(values),
        tuple(drawn.value for drawn in values),
        tuple(its),
        published(results, figure, metric, its),
    )


def has_published(panels: Sequence[Panel]) -> bool:
    lines_of = [line for panel in panels for line in panel.lines]
    return any(line.published or any(p.published for p in line.points) for line in lines_of)


def floor(
    results: Results, figure: Figure, its: Sequence[Configuration]
) -> tuple[tuple[Value, float], ...]:
    """What no proxy can go below, for each x: told by the experiment, or measured."""
    if not figure.floor or figure.over:
        return ()
    by_x: dict[Value, list[float]] = {}
    for it in its:
        value = (
            results.experiment.floor_s(it.params)
            if figure.floor == "floor_s"
            else it.estimate(results.metric(figure.floor)).median
        )
        if value is not None and value == value:
            by_x.setdefault(x_of(it, figure, results), []).append(value)
    if figure.x in CARRIED:  # a level for each value of the hue, whatever x is
        return tuple((None, v) for v in sorted({round(v, 9) for vs in by_x.values() for v in vs}))
    return tuple((x, median(by_x[x])) for x in sorted(by_x, key=sortable))
