# SPDX-License-Identifier: MIT
"""Each configuration beside its baseline: one pipe where there is one, else none."""

from experiments.model import Metric
from experiments.report.data import OF_PIPES, Results
from experiments.report.runs import Configuration
from experiments.statistics import NOTHING, Estimate
from topologies.parameter import Params

CARRIED = ("way", "pipes")
ONE_PIPE: Params = {"way": "pipes", "pipes": 1}
DIRECT: Params = {"way": "direct", "pipes": 0}


def baseline(results: Results) -> Params:
    """Empty where nothing is carried in two ways."""
    for over in (ONE_PIPE, DIRECT):
        if 0 < len(results.select(over)) < len(results.configurations):
            return over
    return {}


def over_baseline(results: Results, it: Configuration, beside: Params, metric: Metric) -> Estimate:
    """The paired ratio to runs that differ in how they were carried, and in nothing else; of what
    may be below 0 there is none."""
    if results.is_signed(metric) or all(
        it.params.get(name) == value for name, value in beside.items()
    ):
        return NOTHING
    of = {name: it.params.get(name) for name in (*results.varying, *beside)}
    return results.ratio(of, like(results, of, beside), metric)


def like(results: Results, of: Params, over: Params) -> Params:
    """`over`, with all else as `of` has it; what does not apply there is not asked of it.

    The number of pipes stays too, unless `over` is about how the bytes are carried."""
    others = results.select(over)
    full = dict(over)
    fixed = {*over, *(CARRIED if set(CARRIED) & set(over) else ())}
    for name in results.varying:
        value = of.get(name)
        applies = any(other.params.get(name) is not None for other in others)
        asked = applies or (name not in OF_PIPES and value is not None)
        if asked and name in of and name not in fixed:
            full[name] = value
    return full
