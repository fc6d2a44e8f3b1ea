# SPDX-License-Identifier: MIT
"""What the causes of a claim are told of its runs, and what they say where a figure is another."""

from statistics import median

from experiments.causes.cause import Seen, Setting, Side
from experiments.model import Claim
from experiments.report.data import Results
from experiments.report.runs import Configuration
from experiments.statistics import Estimate
from experiments.verdicts import Size, Verdict, is_another
from topologies.parameter import Params


def wants_cause(holds: Verdict, size: Size | None) -> bool:
    """Where a figure is another than published, or has no effect that matters."""
    return holds == "nil" or is_another(holds, size)


def causes(results: Results, claim: Claim, got: Estimate) -> list[str]:
    if not claim.causes:
        return []
    seen = seen_of(results, claim, got)
    return [text for it in claim.causes if (text := it.tell(seen))]


def seen_of(results: Results, claim: Claim, got: Estimate) -> Seen:
    return Seen(
        metric=claim.metric,
        ours=got.median,
        paper=claim.paper,
        paper_sides=claim.paper_sides,
        of=side(results, claim.of, claim.metric),
        over=None if claim.over is None else side(results, claim.over, claim.metric),
        select=lambda params: side(results, params, claim.metric),
    )


def side(results: Results, where: Params, metric: str) -> Side:
    """Without settings of which no run measured it: all of them failed."""
    found = [setting(it) for it in results.select(where)]
    return Side([it for it in found if metric in it.measured])


def setting(it: Configuration) -> Setting:
    """Of runs that did what they should; a text or a list is no number."""
    values: dict[str, list[float]] = {}
    for run in it.runs:
        if not run.ok:
            continue
        told = {"completion_s": run.completion_s, **run.measures}
        for name, value in told.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(name, []).append(float(value))
    return Setting(it.params, {name: median(found) for name, found in values.items()})
