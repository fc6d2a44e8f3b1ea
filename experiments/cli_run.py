# SPDX-License-Identifier: MIT
"""tm3lab run: experiments, as they are defined or with other parameters."""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from base.sources import ROOT
from experiments import campaign, catalogue, cli_watch, definition, options, preflight, sweep, tls
from experiments.campaign import How
from experiments.folder import FolderError, Results
from experiments.machine import VOID, attempts
from experiments.model import Experiment
from experiments.parameters import unknown
from experiments.plan import LEAST_ROUNDS, LIMITS, Plan
from experiments.preflight import CannotServe
from experiments.progress import duration
from experiments.runner import Keep
from experiments.stopping import Stopped
from experiments.watch import beside
from topologies.parameter import Parameter, ParameterError

SEED = 1
LEAST_LIMIT_S = 30.0
TIMES_EXPECTED = 12
QUICK_MINUTES = 89
APART_MINUTES = 60.0
APART = Parameter("apart", APART_MINUTES, "number", "", low=0, high=1e5, unit="minutes")
WITHIN = Parameter("within", 60.0, "number", "", low=0.0001, high=1e6, unit="minutes")
SWEEP = "several values, divided by commas, are a sweep: 1,2,4 or 1..8"


def add(commands: Any, argv: Sequence[str]) -> None:
    parser = commands.add_parser(
        "run",
        usage="tm3lab run NAME... [OPTION]... [--PARAMETER VALUE,...]...",
        help="run experiments: plots and a report at the end",
        description=__doc__,
        allow_abbrev=False,
        epilog="`tm3lab run NAME --help` has the parameters of that experiment, too. What stands "
        "in a FILE.toml: experiments/README.md, `A sweep in a file`.",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="experiments, `all`, or FILE.toml")
    add_repetitions(parser, sessions=1)
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help="of repetition 0 (1)")
    parser.add_argument("--quick", action="store_true", help="the smaller sweep of each experiment")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="of a single run")
    add_results(parser)
    parser.add_argument("--fresh", action="store_true", help="continue no unfinished folder")
    parser.add_argument("--dry-run", action="store_true", help="say what would be run")
    parser.add_argument(
        "--within",
        type=float,
        metavar="MINUTES",
        help="begin no further block when the time is up; each experiment has its share of it "
        f"({QUICK_MINUTES} for `all --quick`)",
    )
    add_keep(parser)
    cli_watch.add_option(parser, "serve a page that shows the sweep while it runs")
    add_machines(parser)
    options.add_groups(parser, _named(argv), text=SWEEP)
    parser.set_defaults(do=_run)


def add_repetitions(parser: argparse.ArgumentParser, sessions: int | None) -> None:
    parser.add_argument("--reps", type=int, metavar="N", help="repetitions of each configuration")
    parser.add_argument(
        "--sessions",
        type=int,
        default=sessions,
        metavar="N",
        help="of so many repetitions each, apart in time; intervals are for other sessions, too, "
        f"where there are {LEAST_ROUNDS}",
    )
    parser.add_argument(
        "--apart",
        type=float,
        metavar="MINUTES",
        help="from the end of a session to the next "
        + (
            f"({APART_MINUTES:g})"
            if sessions
            else f"(as it was; of its first two {APART_MINUTES:g})"
        ),
    )


def add_results(parser: Any) -> None:
    parser.add_argument(
        "--results", type=Path, default=ROOT / "results", metavar="DIR", help="in place of results/"
    )


def add_keep(parser: Any) -> None:
    parser.add_argument("--keep-logs", action="store_true", help="of every run, not of rep 0 only")
    parser.add_argument("--keep-pcaps", action="store_true", help="capture what runs send")
    parser.add_argument(
        "--keep-late",
        action="store_true",
        help="count runs in which this machine did not keep up, which are void otherwise, and "
        "begin where it missed the calibration",
    )
    parser.add_argument(
        "--uncalibrated",
        action="store_true",
        help="do not check the links for a few seconds first; the report says so",
    )


def add_machines(parser: Any) -> None:
    parser.add_argument(
        "--part",
        type=_part,
        default=(1, 1),
        metavar="I/N",
        help="every N-th block from the I-th on; other machines do the others: tm3lab merge",
    )
    parser.add_argument(
        "--spread",
        default="",
        metavar="tcp://HOST:8786",
        help="have the workers of this Dask scheduler do the runs (tm3lab worker)",
    )
    tls.add(parser)


def keep(given: argparse.Namespace) -> Keep:
    return Keep(logs=given.keep_logs, pcaps=given.keep_pcaps, late=given.keep_late)


def _part(text: str) -> tuple[int, int]:
    first, _, every = text.partition("/")
    if not (first.isdigit() and every.isdigit() and 1 <= int(first) <= int(every)):
        raise argparse.ArgumentTypeError(f"{text!r} is not I/N, say 1/2 and 2/2")
    return int(first), int(every)


def _named(argv: Sequence[str]) -> list[Experiment]:
    """The experiments that a command line names, for their options; all where it names none."""
    if argv[:1] != ["run"]:
        return []
    named = [_find(word) for word in argv[1:] if word in catalogue.names() or _is_file(word)]
    return named or list(catalogue.experiments())


def _is_file(word: str) -> bool:
    return word.endswith(".toml")


def _find(word: str) -> Experiment:
    if not _is_file(word):
        return catalogue.find(word)
    found = definition.read(Path(word))
    try:
        made = definition.experiment(found, catalogue.find(found["experiment"]))
        definition.check_figures(made)
    except (catalogue.UnknownExperiment, definition.DefinitionError, ParameterError) as why:
        raise definition.DefinitionError(f"{word}: {why}") from None
    return made


def _experiments(names: Sequence[str], *, quick: bool) -> list[Experiment]:
    if "all" in names:
        return [it for it in catalogue.experiments() if it.in_all_quick or not quick]
    return [_find(name) for name in dict.fromkeys(names)]


def plan_of(experiment: Experiment, given: argparse.Namespace, told: dict[str, str]) -> Plan:
    reps = given.reps or (experiment.quick_reps if given.quick else experiment.reps)
    chosen = sweep.configurations(
        experiment, options.overrides(experiment, told), quick=given.quick
    )
    rest_s = max((float(it["idle_s"] or 0) for it in chosen), default=0.0)  # type: ignore[arg-type]
    limit_s = max(LEAST_LIMIT_S, TIMES_EXPECTED * experiment.run_seconds) + rest_s
    limit_s = given.time_limit or limit_s
    return Plan(
        experiment.name,
        tuple(chosen),
        reps,
        given.seed,
        limit_s,
        given.quick,
        dict(experiment.definition) if experiment.definition else None,
        experiment.units,
        given.sessions,
        apart_s(given.apart) if given.sessions > 1 else 0.0,
    )


def apart_s(minutes: float | None) -> float:
    return 60 * (APART_MINUTES if minutes is None else minutes)


def check_limits(given: argparse.Namespace, *more: Parameter) -> None:
    for limit in (LIMITS["reps"], LIMITS["sessions"], APART, *more):
        if getattr(given, limit.name) is not None:
            limit.check(getattr(given, limit.name))


def _check(given: argparse.Namespace, told: dict[str, str], chosen: list[Experiment]) -> None:
    check_limits(given, WITHIN, replace(LIMITS["limit_s"], name="time_limit"))
    for name in told:
        if not any(name in options.known(it) for it in chosen):
            raise unknown(name, options.known(chosen[0]))


def _announce(plans: list[tuple[Experiment, Plan]], root: Path) -> None:
    for experiment, plan in plans:
        campaign.say(campaign.told(experiment, plan, root))
    if len(plans) > 1:
        total_s = sum(campaign.estimate_s(*both, root) for both in plans)
        campaign.say(f"all together: about {duration(total_s)}")


def _run(given: argparse.Namespace) -> int:
    chosen = _experiments(given.names, quick=given.quick)
    told = options.given(given)
    _check(given, told, chosen)
    plans = [(it, plan_of(it, given, told)) for it in chosen]
    _announce(plans, given.results)
    if given.dry_run:
        return 0
    if not given.spread:
        preflight.need_root()
    place = cli_watch.place(given)
    page = beside.found(place) if place else None
    found = []
    for share_s, experiment, plan in _shares(plans, given):
        how = campaign.How(
            *(keep(given), given.part, given.spread, share_s, tls.given(given), page),
            calibrate=not given.uncalibrated,
        )
        found.append(_one(experiment, plan, given, how, alone=len(plans) == 1))
    if len(plans) > 1:
        campaign.index([folder for folder, _ in found if folder])
    return max(status for _, status in found)


def _shares(
    plans: list[tuple[Experiment, Plan]], given: argparse.Namespace
) -> Iterator[tuple[float, Experiment, Plan]]:
    """Each with the time it may take: what is left, by what it and those after it will take."""
    minutes = given.within
    if minutes is None:
        minutes = QUICK_MINUTES if given.quick and "all" in given.names else math.inf
    end = time.monotonic() + 60 * minutes
    expected = [campaign.estimate_s(*both, given.results) for both in plans]
    for number, (experiment, plan) in enumerate(plans):
        share = expected[number] / sum(expected[number:])
        yield (end - time.monotonic()) * share, experiment, plan


def _one(
    experiment: Experiment, plan: Plan, given: argparse.Namespace, how: How, *, alone: bool
) -> tuple[Path | None, int]:
    """Its folder and exit status. Beside others, one that cannot be run does not stop them."""
    try:
        if not how.spread:
            preflight.check(experiment, plan.configurations)
        results = campaign.begin(experiment, plan, given.results, given.fresh)
        with beside.beside(results.path, how.page) if how.page else nullcontext():
            return results.path, carry_out(experiment, results, how)
    except (CannotServe, FolderError) as why:
        if alone:
            raise
        campaign.say(f"{experiment.name} is left out: {why}")
        return None, 1


def carry_out(experiment: Experiment, results: Results, how: How) -> int:
    """The runs, then plots, report and table. 1 if a run failed, or a session could not begin."""
    broken_off = False
    try:
        campaign.run(experiment, results, how)
    except Stopped:
        campaign.say(f"stopped; {results.unfinished()} runs to go: tm3lab resume {results.path}")
        raise
    except CannotServe as why:
        if not results.runs():
            raise
        broken_off = True  # what is done is shown all the same
        campaign.say(str(why))
    if results.unfinished():
        campaign.say(f"{results.unfinished()} runs of the plan are left: {results.path}")
    print(campaign.finish(results), flush=True)
    records = results.runs()
    failed = sum(record["outcome"] not in ("ok", VOID) for record in records)
    void = attempts(records)
    if void:
        campaign.say(
            f"{len(void)} runs are void, after {sum(void.values())} attempts: this machine did not "
            "keep up (the report says by what). They count for nothing"
        )
    campaign.say(f"plots: {results.path / 'plots'}; report: {results.path / 'report.html'}")
    if failed:
        campaign.say(f"{failed} runs failed: their logs are in {results.path / 'logs'}")
    return int(broken_off or failed > 0)
