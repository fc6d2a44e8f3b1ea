# SPDX-License-Identifier: MIT
"""index.html over the results of several experiments: every published row and its verdict."""

import html
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from markupsafe import Markup

from experiments import paper
from experiments.plots.plain import NoPlot
from experiments.plots.svg import inline
from experiments.report import facts, page, words
from experiments.report.data import Results, load
from experiments.report.rows import Row, apart, not_run, rows, tally


def write(folders: Sequence[Path]) -> Path:
    """Where several folders of an experiment are named, the one counts that answers most of its
    claims, of the fullest the one with most runs, of these the newest."""
    all_results = [load(folder) for folder in folders]
    root = Path(os.path.commonpath([it.folder.resolve().parent.parent for it in all_results]))
    fullest = {it.name: it for it in sorted(all_results, key=_fullness)}
    chosen = sorted(fullest.values(), key=_place)
    path = root / "index.html"
    path.write_text(render(chosen, root))
    return path


def _fullness(results: Results) -> tuple[int, int, str]:
    answered = sum(results.answer(claim).enough for claim in results.experiment.claims)
    return answered, len(results.runs), results.folder.name


def _place(results: Results) -> tuple[int, str]:
    """The order of the published rows; what nobody published comes after."""
    names = [it.row for it in paper.ROWS]
    claimed = [claim.row for claim in results.experiment.claims] + [results.name]
    places = [names.index(row) for row in claimed if row in names]
    return min(places, default=len(names)), results.name


def render(all_results: Sequence[Results], root: Path) -> str:
    sections = [_section(it, root) for it in all_results]
    every = [row for section in sections for row in section["found"]]
    published, own = apart(every)
    answered = {row.claim.row for row in every if row.got.n}
    text = (
        page.environment()
        .get_template("index.html")
        .render(
            counts=page.counts(tally(published)),
            sizes=page.size_counts(published),
            own_counts=page.counts(tally(own)),
            sections=sections,
            missing=[it for it in paper.ROWS if it.row not in answered],
            runs=words.count(sum(len(it.runs) for it in all_results), "run"),
            failed=sum(len(it.failed) for it in all_results),
            experiments=words.count(len(all_results), "experiment"),
            commits=_commits(all_results),
            total=words.count(len(published), "row"),
        )
    )
    return text.lstrip()


def _commits(all_results: Sequence[Results]) -> str:
    told = dict.fromkeys(str(it.meta.get("commit") or facts.NOT_TOLD)[:10] for it in all_results)
    return words.listed(list(told))


def _section(results: Results, root: Path) -> dict[str, Any]:
    found: list[Row] = rows(results)
    published, own = apart(found)
    there = Path(os.path.relpath(results.folder.resolve(), root))
    return {
        "name": results.name,
        "title": results.experiment.title,
        "question": results.experiment.question,
        "href": (there / "report.html").as_posix(),
        "facts": facts.short(results),
        "found": found,
        "rows": [page.shown(row, results) for row in published if row.verdict != "none"],
        "own": [page.shown(row, results) for row in own if row.verdict != "none"],
        "not_run": not_run(found),
        "plot": _plot(results),
    }


def _plot(results: Results) -> Markup | None:
    """The first that was drawn."""
    for figure in results.figures():
        path = results.folder / "plots" / f"{figure.name}.svg"
        if path.is_file():
            name, title = f"{results.name}-{figure.name}", html.escape(figure.title)
            with suppress(NoPlot):
                return Markup(inline(path.read_text(errors="replace"), name, title))
    return None
