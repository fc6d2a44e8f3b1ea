# SPDX-License-Identifier: MIT
"""What can and cannot be concluded from this many runs, in sentences.

The contrasts follow from what was swept: most pipes against one and against none; without
pipes in the sweep, the last value of a parameter against its first: of the first parameter that
differs between runs which are alike otherwise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from experiments.model import Metric
from experiments.plan import LEAST_ROUNDS
from experiments.report import words
from experiments.report.beside import like
from experiments.report.data import OF_PIPES, Results, sortable
from experiments.report.facts import has_own_clock
from experiments.report.runs import Key
from experiments.statistics import LEAST, Estimate
from topologies.parameter import Params, Value

CARRIED = ("way", "pipes")
NAMED = 4  # more settings than this are counted, not listed


@dataclass(frozen=True)
class Contrast:
    """of against over where all else is alike; `setting` is the else."""

    of: str
    over: str
    setting: str
    got: Estimate
    matters: float = 0.0  # the smallest effect of interest, as `got` has it
    compared: str = "ratio"  # or the difference, of what may be below 0
    unit: str = ""  # of a difference
    repeats: bool = False  # what looks like an interval is none

    @property
    def says(self) -> str:
        """An effect is said to be there if the interval excludes none and the median is at least
        what matters; alike are two whose interval is within what matters."""
        if not self.got.enough:
            return "few"
        none = 0.0 if self.compared == "difference" else 1.0
        low, high, median = (it - none for it in (self.got.low, self.got.high, self.got.median))
        if -self.matters < low and high < self.matters:
            return "alike"
        if high < 0 and -median >= self.matters:
            return "less"
        return "more" if low > 0 and median >= self.matters else "unclear"


def contrasts(results: Results, metric: Metric) -> list[Contrast]:
    """By setting; where each has too few runs to say anything, over all values of a parameter."""
    return results.once(("contrasts", metric), lambda: _by_setting(results, metric))


def _by_setting(results: Results, metric: Metric) -> list[Contrast]:
    names = [name for name in results.varying if name not in CARRIED]
    found = pooled = _contrasts(results, metric, names)
    while pooled and not any(it.got.enough for it in pooled):
        widest = max(names, key=lambda name: _values(results, name), default="")
        if not widest or _values(results, widest) < LEAST:
            return found
        units = results.experiment.units  # of a draw there may be several parameters
        gone = units if widest in units else (widest,)
        names = [name for name in names if name not in gone]
        pooled = _contrasts(results, metric, names)
    return pooled


def _values(results: Results, name: str) -> int:
    """How many there are to be taken together; early and late binding never are."""
    if name in OF_PIPES:
        return 0
    return len({it.params.get(name) for it in results.configurations} - {None})


def _contrasts(results: Results, metric: Metric, names: Sequence[str]) -> list[Contrast]:
    over_all = [name for name in results.varying if name not in (*names, *CARRIED)]
    found = []
    for of, over in _sides(results):
        mixed = [name for name in over_all if name not in of]
        for setting in _settings(results, of, names):
            whole = {**setting, **of}
            other = like(results, whole, over)
            signed = results.is_signed(metric)
            got = (results.difference if signed else results.ratio)(whole, other, metric)
            if got.n:
                text = words.settings(setting, [*setting])
                text = text and f"{'on' if 'preset' in setting else 'with'} {text}"
                matters = metric.matters or 0.0
                if signed:
                    matters = metric.least(results.pooled(other, metric).median)
                kind = ("difference", metric.unit) if signed else ("ratio", "")
                place = _over(text, mixed)
                alike = [*results.select(whole), *results.select(other)]
                repeats = got.unit != "settings" and results.repeats(alike)
                sides = _called(of), _called(over)
                found.append(Contrast(*sides, place, got, matters, *kind, repeats))
    return found


def _over(text: str, mixed: Sequence[str]) -> str:
    taken = words.listed([words.name(name) for name in mixed])
    return " ".join(filter(None, (text, taken and f"(taken over every {taken})")))


def _called(side: Params) -> str:
    return words.label(side, [*side])


def _sides(results: Results) -> list[tuple[Params, Params]]:
    """What is compared with what."""
    ways = {it.params.get("way", "pipes") for it in results.configurations}
    pipes = sorted(
        it.params["pipes"]
        for it in results.configurations
        if it.params.get("way", "pipes") == "pipes" and isinstance(it.params.get("pipes"), int)
    )
    sides: list[tuple[Params, Params]] = []
    if pipes:
        most: Params = {"way": "pipes", "pipes": pipes[-1]}
        if pipes[0] == 1 < pipes[-1]:
            sides.append((most, {"way": "pipes", "pipes": 1}))
        if "direct" in ways:
            sides.append((most, {"way": "direct"}))
    elif "direct" in ways:
        sides += [({"way": way}, {"way": "direct"}) for way in sorted(ways - {"direct"})]
    if sides:
        return sides
    for name in results.varying:
        values = sorted({it.params.get(name) for it in results.configurations}, key=sortable)
        if len(values) > 1:
            sides.append(({name: values[-1]}, {name: values[0]}))
    alike = (it for it in sides if _meet_a_draw(results, *it) and results.pairs(*it, results.main))
    return [next(alike, sides[0])] if sides else []


def _meet_a_draw(results: Results, of: Params, over: Params) -> bool:
    """Whether both sides have one of the experiment's units in common."""
    units = results.experiment.units
    there = [{results.key(it.params, units) for it in results.select(side)} for side in (of, over)]
    return bool(there[0] & there[1])


def _settings(results: Results, of: Params, names: Sequence[str]) -> list[dict[str, Value]]:
    names = [name for name in names if name not in of]
    found: dict[Key, dict[str, Value]] = {}
    for it in results.select(of):
        found.setdefault(
            results.key(it.params, names), {name: it.params.get(name) for name in names}
        )
    return list(found.values())


def sentences(results: Results) -> list[str]:
    metric = results.main
    found = contrasts(results, metric)
    told = [_runs(results)]
    if not any(run.ok for run in results.runs):
        return [*told, "No run succeeded: nothing can be concluded but that."]
    told += [_of_pair(of, over, found, metric) for of, over in _pairs(found)]
    told += _limits(found)
    if metric.matters and found:
        told.append(f"{words.smallest_effect(metric)} Less is called alike.")
    told.append(_apart(results))
    unknown = sum(run.ok and not (run.machine or {}).get("late_us") for run in results.runs)
    if unknown:
        who = "No run" if unknown == len(results.runs) else f"Not every run ({unknown} do not)"
        known = "only its own programs can have made this machine late"
        if not has_own_clock(results.meta):
            known = "nobody knows if the machine kept up"
        told.append(f"{who} says how late the links were: {known}.")
    return told


def _pairs(found: Sequence[Contrast]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((it.of, it.over) for it in found))


def _runs(results: Results) -> str:
    low, high = results.reps
    each = f"{low}" if low == high else f"{low} to {high}"
    text = (
        f"{words.count(len(results.configurations), 'configuration')} with "
        f"{each} {'run' if high == 1 else 'runs'} each, {len(results.runs)} in all"
    )
    void = f" {results.void} more are void, the machine did not keep up." if results.void else ""
    failed = len(results.failed)
    if not failed:
        return f"{text}; none failed.{void}"
    return f"{text}; {failed} failed and count as infinitely slow (as nothing, for rates).{void}"


def _of_pair(of: str, over: str, all_found: Sequence[Contrast], metric: Metric) -> str:
    """8 pipes are faster than 1 pipe: 0.31 (95 % 0.26 to 0.38) on lossy. Nothing can be ..."""
    found = [it for it in all_found if (it.of, it.over) == (of, over)]
    all_told = []
    for says in ("less", "more", "alike", "unclear", "few"):
        its = [it for it in found if it.says == says]
        if its:
            said = _compared(of, over, says, metric, its[0].compared == "difference")
            if says == "few":
                least = min(it.got.n for it in its)
                unit = (its[0].got.unit or "pairs")[:-1]
                said += f" from {words.count(least, unit)} ({LEAST} would do)"
            told = f"{said}{_where(its, len(found))}."
            all_told.append(f"{told[:1].upper()}{told[1:]}")
    return " ".join(all_told)


def _compared(of: str, over: str, says: str, metric: Metric, signed: bool) -> str:
    if says in ("unclear", "few"):
        return f"nothing can be said of {of} against {over}"
    if says == "alike":
        least = words.share(metric.matters or 0.0)
        if signed and metric.matters_by is not None:
            least = f"{metric.matters_by:g}\N{NO-BREAK SPACE}{metric.unit}".strip()
        return f"{metric.label}: {of} and {over} differ by less than {least}, which matters little"
    if metric.name == "completion_s":
        verb = "are" if of.endswith("pipes") else "is"
        return f"{of} {verb} {'faster' if says == 'less' else 'slower'} than {over}"
    size = "smaller" if says == "less" else "larger"
    return f"{metric.label}: {size} with {of} than with {over}"


def _where(its: Sequence[Contrast], of_all: int) -> str:
    if len(its) <= NAMED:
        return ": " + "; ".join(_told(it) for it in its)
    ordered = sorted(its, key=lambda it: it.got.median)
    return f" in {len(its)} of {of_all} settings: from {_told(ordered[0])} to {_told(ordered[-1])}"


def _told(it: Contrast) -> str:
    """0.31 (95 % 0.26 to 0.38) on lossy, 300 KB."""
    level = "95\N{NO-BREAK SPACE}% " if it.got.enough else "range "
    write = words.number if it.compared == "difference" else words.ratio
    inside = f" ({level}{words.span(it.got, write)})" if it.got.n > 1 else ""
    unit = f"\N{NO-BREAK SPACE}{it.unit}" if it.unit else ""
    more = " more" if it.compared == "difference" else ""
    where = f" {it.setting}" if it.setting else ""
    return f"{write(it.got.median)}{unit}{more}{inside}{where}"


def _apart(results: Results) -> str:
    """Whether the intervals are for another day, too."""
    sessions = results.sessions
    if sessions >= LEAST_ROUNDS:
        told = f"The intervals are for other sessions, too: these runs are of {sessions}."
        if any(claim.statistic == "p95" for claim in results.experiment.claims):
            told += " Those of 95th percentiles are for other runs of these sessions alone."
        return told
    some = "one session" if sessions == 1 else f"{sessions} sessions, too few to tell"
    return f"All runs are of {some}: how much another one would differ is in no interval."


def _limits(found: Sequence[Contrast]) -> list[str]:
    enough = [it.got.half_width for it in found if it.got.enough and it.compared == "ratio"]
    finite = [width for width in enough if math.isfinite(width)]
    told = []
    if finite:
        told.append(
            f"Differences of less than about {max(1.0, median(finite) * 100):.0f}"
            "\N{NO-BREAK SPACE}% are beyond this many runs."
        )
    if len(enough) > 5:
        told.append(
            f"{len(enough)} intervals at 95\N{NO-BREAK SPACE}% were looked at: one in twenty "
            "excludes 1 by chance alone."
        )
    return told
