# SPDX-License-Identifier: MIT
"""tm3lab list: the experiments, or one with its parameters."""

import argparse
from typing import Any

from experiments import catalogue, options, parameters
from experiments.model import Experiment


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "list",
        help="the experiments; of those named, their parameters",
        description="Without a name all experiments in a line each; of those named the sweep, what "
        "they measure, what was published beside it, and every parameter.",
        allow_abbrev=False,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as download")
    parser.set_defaults(do=show)


def show(given: argparse.Namespace) -> int:
    if not given.names:
        width = max(map(len, catalogue.names()), default=0)
        for experiment in catalogue.experiments():
            print(f"{experiment.name:<{width}}  {experiment.title}")
        return 0
    print("\n\n".join(described(catalogue.find(name)) for name in given.names))
    return 0


def _axis(values: Any) -> str:
    words = [values] if isinstance(values, str) or not hasattr(values, "__iter__") else values
    return ", ".join(str(word) for word in words)


def described(experiment: Experiment) -> str:
    lines = [f"{experiment.name}: {experiment.title}", f"  {experiment.question}", ""]
    for grid in experiment.grids:
        lines.append("  sweep: " + "; ".join(f"{name} {_axis(it)}" for name, it in grid.items()))
    lines.append(f"  repetitions: {experiment.reps} (--quick: {experiment.quick_reps})")
    if "vm" in experiment.clients:
        lines.append("  --client vm: also with a virtual machine as the client")
    lines.append("  measures: " + ", ".join(f"{it.name} ({it.label})" for it in experiment.metrics))
    for claim in experiment.claims:
        figure = f", {claim.paper:g}{' ' + claim.unit if claim.unit else ''}" if claim.paper else ""
        told = f" ({claim.measured})" if claim.measured else ""
        whence = "own bound" if claim.is_own else f"published: {claim.where}"
        lines.append(f"  {whence}: {claim.says}{told}{figure}")
    lines += ["", "  parameters:"]
    known = parameters.by_name(experiment.parameters)
    for name, parameter in known.items():
        lines.append(f"    {options.flag(name):<22} {options.described(parameter)}")
    return "\n".join(lines)
