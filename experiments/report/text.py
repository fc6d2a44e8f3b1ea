# SPDX-License-Identifier: MIT
"""The report in short, as text for the terminal."""

from io import StringIO
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from experiments.report import words
from experiments.report.beside import baseline, over_baseline
from experiments.report.conclusions import sentences
from experiments.report.data import Results, load
from experiments.report.rows import Row, apart, not_run, rows
from experiments.report.runs import Configuration
from topologies.parameter import Params

# Columns of a comparison: where there is no interval words stand in its place.
NAME_LEAST, INTERVAL_MOST = 20, 16
CLOSE = (0, 1, 0, 0)  # of a table of many columns: two spaces between them, in place of three


def table(folder: Path, width: int = 100) -> str:
    return of(load(folder), width)


def of(results: Results, width: int = 100) -> str:
    out = StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False, markup=False)
    console.print(f"{results.name}: {results.experiment.title}\n", soft_wrap=True)
    console.print(configurations(results))
    if results.experiment.shown:
        console.print("\nMedians of what else was measured")
        console.print(further(results))
    if results.experiment.claims:
        found = rows(results)
        titles = ("Beside the published figures", "The laboratory's own bounds")
        for title, its in zip(titles, apart(found), strict=True):
            told = [row for row in its if row.verdict != "none"]
            if told:
                console.print(f"\n{title}")
                console.print(comparison(told))
        if not_run(found):
            console.print(f"\n{not_run(found)}")
    console.print()
    for sentence in sentences(results):
        console.print(sentence)
    lines = (line.rstrip() for line in out.getvalue().splitlines())
    return "\n".join(lines) + "\n"


def _plain() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)


def _right(made: Table, *names: str) -> None:
    for name in names:
        made.add_column(name, justify="right", no_wrap=True)


def configurations(results: Results) -> Table:
    """Median and interval of the main metric; beside one pipe, and beside the floor."""
    metric = results.main
    made = _plain()
    made.padding = CLOSE
    made.add_column("configuration")
    unit = f" [{metric.unit}]" if metric.unit else ""
    _right(made, "n", "failed", f"median{unit}", "95 %", "mean", "p95")
    beside = baseline(results)
    floors = [results.experiment.floor_s(it.params) for it in results.configurations]
    floored = metric.name == "completion_s" and any(floors)
    if beside:
        _right(made, f"/ {words.carried(beside)}", "95 %")
    if floored:
        _right(made, "floor")
    before = ""
    for it, floor in zip(results.configurations, floors, strict=True):
        setting = words.settings(it.params, results.varying)
        carried = words.label(it.params, [n for n in ("way", "pipes") if n in results.varying])
        if carried and setting and setting != before:
            made.add_row(setting)
        before = setting
        name = f"  {carried}" if carried and setting else carried or setting or results.name
        least = [words.number(floor)] if floored and floor else []
        made.add_row(name, *_cells(results, it, beside), *least)
    return made


def further(results: Results) -> Table:
    """Of each configuration the metrics that its experiment wants shown beside the main one."""
    metrics = [results.metric(name) for name in results.experiment.shown]
    made = _plain()
    made.add_column("configuration")
    _right(made, *(it.name for it in metrics))
    for it in results.configurations:
        values = (it.estimate(metric) for metric in metrics)
        name = words.label(it.params, results.varying) or results.name
        made.add_row(name, *(words.number(got.median) if got.n else "" for got in values))
    return made


def _cells(results: Results, it: Configuration, beside: Params) -> list[str]:
    got = it.estimate(results.main)
    cells = [str(len(it.runs)), str(it.failed or ""), words.number(got.median), words.interval(got)]
    cells += [words.number(got.mean), words.number(got.p95)] if got.n else ["", ""]
    if beside:
        ratio = over_baseline(results, it, beside, results.main)
        cells += (
            [words.ratio(ratio.median), words.interval(ratio, words.ratio)] if ratio.n else ["", ""]
        )
    return cells


def comparison(found: list[Row]) -> Table:
    """Of rows that were published, or of own bounds, which nobody else has a value for."""
    own = bool(found) and found[0].claim.is_own
    made = _plain()
    made.padding = CLOSE
    made.add_column("bound" if own else "published", min_width=NAME_LEAST)
    _right(made, *([] if own else ["paper"]), "ours")
    made.add_column("95 %", justify="right", max_width=INTERVAL_MOST)
    _right(made, "pairs", *(["holds?"] if own else ["same direction?", "same size?"]))
    for row in found:
        told = f" ({row.claim.measured})" if row.claim.measured else ""
        made.add_row(
            f"{'' if own else row.claim.where + ': '}{row.claim.says}{told}",
            *([] if own else [row.paper]),
            row.ours,
            row.interval,
            str(row.got.n or ""),
            f"{row.mark} {row.says}",
            *([] if own else [row.size_says]),
        )
    return made
