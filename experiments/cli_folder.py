# SPDX-License-Identifier: MIT
"""tm3lab resume, plot, report, merge, compare: what is done with folders of results."""

import argparse
from pathlib import Path
from typing import Any

from base.sources import ROOT
from experiments import campaign, catalogue, cli_run, in_force, merge, parameters, preflight, tls
from experiments.campaign import How
from experiments.folder import FolderError, Results
from experiments.model import Experiment
from experiments.plan import Plan

FOLDER = "of results: results/NAME/UTC-COMMIT"


def add(commands: Any) -> None:
    resume = commands.add_parser(
        "resume",
        help="do the runs that a folder lacks, or more of them",
        description="Goes on with a sweep that was interrupted, or does its void runs once more; "
        "or, where its runs do not decide, gives it more repetitions or sessions. Then plots and "
        "report, as `run` ends.",
    )
    resume.add_argument("folder", type=Path, metavar="DIR", help=FOLDER)
    cli_run.add_repetitions(resume, sessions=None)
    cli_run.add_keep(resume)
    cli_run.add_machines(resume)
    resume.set_defaults(do=_resume)
    again = commands.add_parser(
        "again",
        help="all of a folder's plan once more, in a new folder",
        description="The same configurations, seeds and TCP settings as in DIR, by these sources; "
        "says what else of this machine differs. Then: tm3lab compare DIR NEW.",
    )
    again.add_argument("folder", type=Path, metavar="DIR", help=FOLDER)
    cli_run.add_results(again)
    cli_run.add_keep(again)
    again.set_defaults(do=_again)
    for name, text, more, do in (
        (
            "plot",
            "draw a folder's plots anew",
            "Draws plots/ from runs.jsonl. Those that need logs which a folder does not keep, as "
            "in results/curated, stay as they were drawn, and are named.",
            _plot,
        ),
        (
            "report",
            "write a folder's report anew",
            "Writes report.html and summary.json from runs.jsonl, and shows their tables.",
            _report,
        ),
    ):
        parser = commands.add_parser(name, help=text, description=more)
        parser.add_argument("folders", type=Path, nargs="+", metavar="DIR", help=FOLDER)
        parser.set_defaults(do=do)
    joined = commands.add_parser(
        "merge",
        help="folders of parts of one plan, made by --part",
        description="Makes one folder of those that `tm3lab run --part 1/2` and `--part 2/2` "
        "left on two machines, and its plots and report.",
    )
    joined.add_argument("folders", type=Path, nargs="+", metavar="DIR", help=FOLDER)
    cli_run.add_results(joined)
    joined.set_defaults(do=_merge)
    compare = commands.add_parser(
        "compare",
        help="two folders of the same experiment",
        description="B over A for every configuration and every ratio that both have, how many of "
        "B's medians lie in A's intervals, and what else differs.",
    )
    compare.add_argument("a", type=Path, metavar="A", help=FOLDER)
    compare.add_argument("b", type=Path, metavar="B", help="another one")
    compare.set_defaults(do=_compare)
    site = commands.add_parser(
        "publish",
        help="a static site of curated results",
        description="Writes index, reports and plots of all results below a folder as a site that "
        "fetches nothing. DIR is made, or replaced if it is such a site.",
    )
    site.add_argument("site", type=Path, metavar="DIR", help="the site's folder")
    site.add_argument(
        "--of",
        type=Path,
        default=ROOT / "results" / "curated",
        metavar="RESULTS",
        help="in place of results/curated",
    )
    site.set_defaults(do=_publish)


def _merge(given: argparse.Namespace) -> int:
    merged = merge.merge(given.folders, given.results)
    campaign.say(f"{len(merged.runs())} runs, {merged.unfinished()} missing: {merged.path}")
    print(campaign.finish(merged))
    return 0


def _planned(results: Results) -> Experiment:
    """The experiment, if this version can carry out the folder's plan."""
    try:
        experiment = catalogue.of(results.meta)
    except (KeyError, TypeError) as why:
        raise FolderError(f"{results.path}: its meta.json lacks {why}") from None
    known = set(parameters.by_name(experiment.parameters))
    if any(set(params) != known for params in results.plan.configurations):
        raise FolderError(
            f"{results.path}: planned with other parameters than this version knows: "
            "it can be reported and compared, not run"
        )
    return experiment


def _again(given: argparse.Namespace) -> int:
    before = Results.open(given.folder)
    experiment = _planned(before)
    preflight.need_root()
    preflight.check(experiment, before.plan.configurations)
    results = campaign.begin_again(experiment, before, given.results)
    how = How(cli_run.keep(given), calibrate=not given.uncalibrated)
    status = cli_run.carry_out(experiment, results, how)
    for line in in_force.differs(before.meta, results.meta):
        campaign.say(f"otherwise than in {before.path}: {line}")
    return status


def _resume(given: argparse.Namespace) -> int:
    results = Results.open(given.folder)
    experiment = _planned(results)
    longer = _longer(results.plan, given)
    how = How(
        *(cli_run.keep(given), given.part, given.spread),
        tls=tls.given(given),
        calibrate=not given.uncalibrated,
        once_more=True,
    )
    if not how.spread:
        preflight.check(experiment, results.plan.configurations)
    if longer != results.plan:
        results.replan(longer)
        campaign.say(f"{results.path} has {campaign.repetitions(longer)} now")
    return cli_run.carry_out(experiment, results, how)


def _longer(plan: Plan, given: argparse.Namespace) -> Plan:
    cli_run.check_limits(given)
    as_it_was = given.apart is None and plan.sessions > 1
    return plan.longer(
        given.reps, given.sessions, None if as_it_was else cli_run.apart_s(given.apart)
    )


def _plot(given: argparse.Namespace) -> int:
    from experiments import plots

    for folder in given.folders:
        results = Results.open(folder)
        for path in plots.draw(folder, campaign.say):
            print(path)
        results.hand_back()
    return 0


def _report(given: argparse.Namespace) -> int:
    from experiments import report

    for folder in given.folders:
        results = Results.open(folder)
        print(report.table(folder))
        print(report.write(folder))
        results.hand_back()
    return 0


def _compare(given: argparse.Namespace) -> int:
    from experiments import compare

    for folder in (given.a, given.b):
        Results.open(folder)
    found = compare.compare(given.a, given.b)
    print(found)
    print(found.html)
    return 0


def _publish(given: argparse.Namespace) -> int:
    from experiments.site.publish import publish

    print(publish(given.of, given.site, campaign.say))
    return 0
