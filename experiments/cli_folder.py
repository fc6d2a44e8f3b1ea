# SPDX-License-Identifier: MIT
"""tm3lab resume, plot, report, merge, compare: what is done with folders of results."""

import argparse
from pathlib import Path
from typing import Any

from experiments import campaign, catalogue, cli_run, merge, parameters, preflight, tls
from experiments.campaign import How
from experiments.folder import FolderError, Results


def add(commands: Any) -> None:
    resume = commands.add_parser("resume", help="do the runs that a folder lacks")
    resume.add_argument("folder", type=Path, metavar="DIR")
    cli_run.add_keep(resume)
    cli_run.add_machines(resume)
    resume.set_defaults(do=_resume)
    for name, text, do in (
        ("plot", "draw a folder's plots anew", _plot),
        ("report", "write a folder's report anew", _report),
    ):
        parser = commands.add_parser(name, help=text)
        parser.add_argument("folders", type=Path, nargs="+", metavar="DIR")
        parser.set_defaults(do=do)
    joined = commands.add_parser("merge", help="folders of parts of one plan, made by --part")
    joined.add_argument("folders", type=Path, nargs="+", metavar="DIR")
    cli_run.add_results(joined)
    joined.set_defaults(do=_merge)
    compare = commands.add_parser("compare", help="two folders of the same experiment")
    compare.add_argument("a", type=Path, metavar="A")
    compare.add_argument("b", type=Path, metavar="B")
    compare.set_defaults(do=_compare)


def _merge(given: argparse.Namespace) -> int:
    merged = merge.merge(given.folders, given.results)
    campaign.say(f"{len(merged.runs())} runs, {merged.unfinished()} missing: {merged.path}")
    print(campaign.finish(merged))
    return 0


def _resume(given: argparse.Namespace) -> int:
    results = Results.open(given.folder)
    try:
        experiment = catalogue.of(results.meta)
    except (KeyError, TypeError) as why:
        raise FolderError(f"{results.path}: its meta.json lacks {why}") from None
    known = set(parameters.by_name(experiment.parameters))
    if any(set(params) != known for params in results.plan.configurations):
        raise FolderError(
            f"{results.path}: planned with other parameters than this version knows: "
            "it can be reported and compared, not resumed"
        )
    how = How(cli_run.keep(given), given.part, given.spread, tls=tls.given(given))
    if not how.spread:
        preflight.check(experiment, results.plan.configurations)
    return cli_run.carry_out(experiment, results, how)


def _plot(given: argparse.Namespace) -> int:
    from experiments import plots

    for folder in given.folders:
        results = Results.open(folder)
        for path in plots.draw(folder):
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
