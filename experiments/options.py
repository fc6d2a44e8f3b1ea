# SPDX-License-Identifier: MIT
"""Parameters as options of a command line: one for each, with its unit, range and choices."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from experiments import parameters, sweep
from experiments.model import Experiment
from topologies.parameter import SHARE, Parameter, ParameterError, Value, written

_METAVAR = {"whole": "N", "number": "X", "size": "SIZE", "truth": "yes|no", "text": "WORD"}


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def values(parameter: Parameter, text: str) -> tuple[Value, ...]:
    """`1,2,4`, `1..8`; with values that hold commas themselves, semicolons divide."""
    divider = ";" if parameter.name in parameters.TEXT_WITH_COMMAS else ","
    found: list[Value] = []
    for word in text.split(divider):
        first, dots, last = word.partition("..")
        if dots and parameter.kind == "whole":
            low, high = (int(str(parameters.read(parameter, it))) for it in (first, last))
            if high - low >= sweep.MOST_CONFIGURATIONS:
                most = sweep.MOST_CONFIGURATIONS
                raise ParameterError(parameter.name, f"{word} are more than {most} values")
            found += range(low, high + 1)
        else:
            found.append(parameters.read(parameter, word))
    if not found:
        raise ParameterError(parameter.name, f"{text!r} has no value")
    return tuple(dict.fromkeys(found))


def described(parameter: Parameter) -> str:
    """For --help and `list`."""
    default = written(parameter.default)
    share = ", or 0% to 100%" if parameter.unit == SHARE else ""
    told = [parameter.values() + share, f"default {default}" if default else ""]
    told.append(f"with {parameters.needs(parameter)} only" if parameter.needs else "")
    more = "; ".join(part for part in told if part)
    return parameter.help + (f" ({more})" if more else "")


def add(parser: Any, wanted: Iterable[Parameter]) -> None:
    for parameter in wanted:
        parser.add_argument(
            flag(parameter.name),
            dest=f"param_{parameter.name}",
            metavar=_METAVAR[parameter.kind],
            help=described(parameter).replace("%", "%%"),
            default=argparse.SUPPRESS,
        )


def add_groups(
    parser: argparse.ArgumentParser,
    experiments: Iterable[Experiment],
    *,
    without: Sequence[str] = (),
    text: str = "",
) -> None:
    """The common ones by what they are of; before them what only these experiments have."""
    own: dict[str, Parameter] = {}
    for experiment in experiments:
        for parameter in experiment.parameters:
            own.setdefault(parameter.name, parameter)
    known: list[str] = []
    of_pipes = [it for it in parameters.COMMON if it not in parameters.LAB]
    groups = {
        "the experiment": own.values(),
        "the pipes": of_pipes,
        "the last mile": parameters.LAB,
    }
    for title, members in groups.items():
        there = [it for it in members if it is own.get(it.name, it) and it.name not in without]
        known += [it.name for it in there]
        if there:
            add(parser.add_argument_group(f"parameters of {title}", text), there)
    parser.set_defaults(known=known)


def given(options: argparse.Namespace) -> dict[str, str]:
    """What the command line says of parameters, by their names."""
    return {
        name.removeprefix("param_"): text
        for name, text in vars(options).items()
        if name.startswith("param_")
    }


def known(experiment: Experiment) -> dict[str, Parameter]:
    return parameters.by_name(experiment.parameters)


def overrides(experiment: Experiment, told: dict[str, str]) -> dict[str, tuple[Value, ...]]:
    """Of these, those that the experiment has."""
    there = known(experiment)
    return {name: values(there[name], text) for name, text in told.items() if name in there}
