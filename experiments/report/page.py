# SPDX-License-Identifier: MIT
"""report.html: one page that needs nothing beside it, no network and no file."""

import html
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from experiments.model import Figure, Metric
from experiments.plots.drawing import caption, draw_one
from experiments.plots.plain import NoPlot
from experiments.plots.svg import inline
from experiments.report import facts, summary, words
from experiments.report.beside import baseline, over_baseline
from experiments.report.conclusions import sentences
from experiments.report.data import Results, load
from experiments.report.rows import (
    MARKS,
    SAYS,
    SIZES,
    Row,
    apart,
    not_run,
    rows,
    sizes,
    tally,
)
from experiments.report.runs import Configuration

TEMPLATES = Path(__file__).parent / "templates"
FOREST = 136.0  # units that the small picture of an interval is wide


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["style"] = Markup((TEMPLATES / "style.css").read_text())
    return made


def write(folder: Path) -> Path:
    results = load(folder)
    found = rows(results)
    summary.write(results, found)
    path = results.folder / "report.html"
    path.write_text(render(results, found))
    return path


def render(results: Results, found: list[Row], home: str = "") -> str:
    """`home`: where the page over all reports is, in a site."""
    experiment = results.experiment
    published, own = apart(found)
    plots = [(figure, _svg(results, figure)) for figure in results.figures()]
    text = (
        environment()
        .get_template("report.html")
        .render(
            title=experiment.title,
            question=experiment.question,
            about=experiment.notes,
            facts_short=facts.short(results),
            rows=[shown(row, results) for row in published if row.verdict != "none"],
            own=[shown(row, results) for row in own if row.verdict != "none"],
            not_run=not_run(found),
            counts=counts(tally(published)),
            sizes=size_counts(published),
            own_counts=counts(tally(own)),
            conclusions=sentences(results),
            plots=[
                {"svg": Markup(svg), "caption": caption(results, figure)}
                for figure, svg in plots
                if svg
            ],
            undrawn=[figure.title for figure, svg in plots if not svg],
            tables=[_table(results, metric) for metric in experiment.metrics],
            failures=_failures(results),
            failed_text=_failed_text(results),
            runs_text=words.count(len(results.runs), "run"),
            facts=facts.of(results),
            labs=facts.labs(results),
            again=facts.again(results),
            by_this_version=facts.by_this_version(results),
            footer=facts.footer(results),
            home=home,
        )
    )
    return text.lstrip()


def _svg(results: Results, figure: Figure) -> str | None:
    """Of the plots folder, if it is a plot and not older than the runs; else drawn now."""
    folder = results.folder / "plots"
    path, ran = folder / f"{figure.name}.svg", results.folder / "runs.jsonl"
    fresh = path.is_file() and not (ran.exists() and path.stat().st_mtime < ran.stat().st_mtime)
    found = _inline(path, figure) if fresh else None
    if found is None and draw_one(results, figure, folder):
        return _inline(path, figure)
    # Of logs that are gone there is only what was drawn then.
    return found or (_inline(path, figure) if figure.kind == "series" else None)


def _inline(path: Path, figure: Figure) -> str | None:
    """None: there is none, or it is no plot."""
    with suppress(NoPlot, FileNotFoundError):
        text = path.read_text(errors="replace")
        return inline(text, figure.name, html.escape(figure.title))
    return None


def counts(found: dict[Any, int]) -> list[tuple[str, str, str, int]]:
    return [(name, SAYS[name], MARKS[name], n) for name, n in found.items()]


def size_counts(found: list[Row]) -> list[tuple[str, int]]:
    return [(SIZES[name], n) for name, n in sizes(found).items() if n]


def shown(row: Row, results: Results) -> dict[str, Any]:
    """A row as the template takes it."""
    main = row.metric.name == results.main.name
    told = filter(None, ("" if main else row.metric.label, row.claim.measured))
    return {
        "claim": row.claim,
        "metric_label": ", ".join(told),
        "paper": row.paper,
        "ours": row.ours,
        "interval": row.interval,
        "enough": row.got.enough and not row.repeats,
        "n": row.got.n,
        "across": row.got.across,
        "basis": row.basis.told,
        "repeats": row.repeats,
        "expected": row.expected,
        "verdict": row.verdict,
        "mark": row.mark,
        "said": row.says,
        "size": row.size or "",
        "size_said": row.size_says,
        "asked": row.asked,
        "holm": row.holm,
        "tail": row.tail,
        "why": (*row.why, *row.causes),
        "forest": _forest(row),
    }


def _forest(row: Row) -> dict[str, float | None] | None:
    """Places in the small picture: from 0 to a little beyond what is to be seen."""
    got, than, paper = row.got, row.claim.than, row.claim.paper
    if row.claim.is_difference or not got.n or not 0 <= got.median < float("inf"):
        return None
    seen = [than, got.median, min(got.high, 3 * max(than, got.median)), paper or 0.0]
    end = 1.15 * max(seen) or 1.0

    def at(value: float) -> float:
        return round(min(max(value / end, 0.0), 1.0) * FOREST, 1)

    return {
        "low": at(got.low),
        "high": at(got.high),
        "median": at(got.median),
        "border": at(than),
        "paper": None if paper is None else at(paper),
    }


def _table(results: Results, metric: Metric) -> dict[str, Any]:
    beside = baseline(results)
    floored = metric.name == "completion_s" and any(
        results.experiment.floor_s(it.params) for it in results.configurations
    )
    groups: dict[str, list[dict[str, Any]]] = {}
    for it in results.configurations:
        line = _line(results, it, metric, beside)
        groups.setdefault(line.pop("group"), []).append(line)
    unit = f" [{metric.unit}]" if metric.unit else ""
    return {
        "label": f"{metric.label}{unit}",
        "beside": words.carried(beside) if beside else "",
        "floored": floored,
        "groups": [{"name": name, "lines": lines} for name, lines in groups.items()],
    }


def _line(results: Results, it: Configuration, metric: Metric, beside: Any) -> dict[str, Any]:
    got = it.estimate(metric)
    setting = words.settings(it.params, results.varying)
    carried = words.label(it.params, [n for n in ("way", "pipes") if n in results.varying])
    over = over_baseline(results, it, beside, metric) if beside else None
    floor = results.experiment.floor_s(it.params)
    return {
        "group": setting if carried else "",
        "name": carried or setting or results.name,
        "runs": len(it.runs),
        "failed": it.failed,
        "enough": got.enough,
        "median": words.number(got.median),
        "interval": words.interval(got),
        "mean": words.number(got.mean) if got.n else "",
        "p95": words.number(got.p95) if got.n else "",
        "quartiles": f"{words.number(got.q1)} to {words.number(got.q3)}" if got.n else "",
        "ratio": words.ratio(over.median) if over and over.n else "",
        "ratio_interval": words.interval(over, words.ratio) if over else "",
        "floor": words.number(floor) if floor else "",
    }


def _failures(results: Results) -> list[dict[str, Any]]:
    """Alike ones of a configuration are one line."""
    times: Counter[tuple[str, str, str]] = Counter()
    logs: dict[tuple[str, str, str], str] = {}
    for run in results.failed:
        label = words.label(run.params, results.varying)
        key = (label, run.outcome, run.error or "no error was told")
        times[key] += 1
        if run.logs and (results.folder / run.logs).is_dir():
            logs.setdefault(key, run.logs)
    return [
        {"name": key[0], "outcome": key[1], "error": key[2], "times": n, "logs": logs.get(key)}
        for key, n in sorted(times.items())
    ]


def _failed_text(results: Results) -> str:
    failed = len(results.failed)
    return (
        f"{failed} of {words.count(len(results.runs), 'run')} failed. They stay in every "
        "denominator: as infinitely slow for times, as nothing for rates."
    )
