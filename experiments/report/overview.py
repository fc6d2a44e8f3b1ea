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
from experiments.verdicts import ANOTHER


def write(folders: Sequence[Path]) -> Path:
    """Where several folders of an experiment are named, the one counts that answers most of its
    claims, of the fullest the one with most runs, of these the newest."""
    all_results = [load(folder) for folder in folders]
    root = Path(os.path.commonpath([it.folder.resolve().parent.parent for it in all_results]))
    path = root / "index.html"
    path.write_text(render(_chosen(all_results), root))
    return path


def write_site(root: Path, all_results: Sequence[Results], about: Markup) -> Path:
    """The same in a folder that holds them all: each of them can be reached, and how to read
    them is told."""
    chosen = _chosen(all_results)
    others = [it for it in all_results if not any(it is one for one in chosen)]
    path = root / "index.html"
    path.write_text(render(chosen, root, others, about))
    return path


def _chosen(all_results: Sequence[Results]) -> list[Results]:
    fullest = {it.name: it for it in sorted(all_results, key=_fullness)}
    return sorted(fullest.values(), key=_place)


def _fullness(results: Results) -> tuple[int, int, str]:
    answered = sum(results.answer(claim).enough for claim in results.experiment.claims)
    return answered, len(results.runs), results.folder.name


def _place(results: Results) -> tuple[int, str]:
    """The order of the published rows; what nobody published comes after."""
    names = [it.row for it in paper.ROWS]
    claimed = [claim.row for claim in results.experiment.claims] + [results.name]
    places = [names.index(row) for row in claimed if row in names]
    return min(places, default=len(names)), results.name


def render(
    all_results: Sequence[Results],
    root: Path,
    others: Sequence[Results] = (),
    about: Markup | None = None,
) -> str:
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
            others=[{"href": _href(it, root), **_named(it)} for it in others],
            about=about,
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
    return {
        "name": results.name,
        "title": results.experiment.title,
        "question": results.experiment.question,
        "href": _href(results, root),
        "facts": facts.short(results),
        "found": found,
        "counts": page.counts(tally(published)),
        "sizes": _sizes(published),
        "own_counts": page.counts(tally(own)),
        "rows": [page.shown(row, results) for row in published if row.verdict != "none"],
        "own": [page.shown(row, results) for row in own if row.verdict != "none"],
        "not_run": not_run(found),
        "plot": _plot(results),
    }


def _sizes(published: Sequence[Row]) -> list[tuple[str, str, str, int]]:
    """In two marks: of the same size, or not."""
    found = [it.size for it in published]
    other = sum(it in ANOTHER for it in found)
    few = found.count("few")
    return [
        ("yes", "same size", "✓", found.count("yes")),
        ("no", "another size", "✗", other),
        ("unclear", "not decided", "~", found.count("unclear")),
        ("few", "too few runs", "?", few),
    ]


def _href(results: Results, root: Path) -> str:
    there = Path(os.path.relpath(results.folder.resolve(), root.resolve()))
    return (there / "report.html").as_posix()


def _named(results: Results) -> dict[str, Any]:
    return {"title": f"{results.name}, {results.folder.name}", "facts": facts.short(results)}


def _plot(results: Results) -> Markup | None:
    """The first that was drawn."""
    for figure in results.figures():
        path = results.folder / "plots" / f"{figure.name}.svg"
        if path.is_file():
            name, title = f"{results.name}-{figure.name}", html.escape(figure.title)
            with suppress(NoPlot):
                return Markup(inline(path.read_text(errors="replace"), name, title))
    return None
