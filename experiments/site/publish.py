# SPDX-License-Identifier: MIT
"""Writes the site.

All pages are made anew from runs.jsonl, by the statistics of this version, in a folder beside DIR
that takes its place when it is whole. They fetch nothing, and tell the browser so.
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from base.sources import ROOT
from experiments import folder
from experiments.folder import META, RUNS, FolderError
from experiments.plots import drawing
from experiments.plots.plain import NoPlot, plain
from experiments.report import overview, page, summary
from experiments.report.data import Results, load
from experiments.report.rows import rows
from experiments.site import about
from topologies.parameter import ParameterError

MARK = "site.json"  # in a folder that may be replaced
FORMAT = 1
DATA = (META, RUNS, "notes.json")
HOME = "../../index.html"  # from a report
READING = ROOT / "results" / "reading.md"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"'


def publish(root: Path, there: Path, say: Callable[[str], None]) -> Path:
    """The site of all results below `root`; its index."""
    found = _found(root)
    _check(root, there)
    there.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{there.name}-", dir=there.parent) as scratch:
        made = Path(scratch) / "site"
        made.mkdir()
        copies = []
        for number, path in enumerate(found, 1):
            say(f"{number}/{len(found)}: {path.parent.name}/{path.name}")
            copies.append(_folder(path, made / path.parent.name / path.name))
        overview.write_site(made, copies, about.part(READING.read_text()))
        told = {"format": FORMAT, "folders": [f"{it.name}/{it.folder.name}" for it in copies]}
        (made / MARK).write_text(json.dumps(told, indent=1) + "\n")
        if there.exists():
            there.rename(Path(scratch) / "before")
        made.rename(there)
    return there / "index.html"


def _found(root: Path) -> list[Path]:
    names = sorted(it.name for it in root.iterdir()) if root.is_dir() else []
    found = [path for name in names for path in folder.find(root, name)]
    if not found:
        raise FolderError(f"{root}: no results to publish (no NAME/UTC-COMMIT/{META})")
    return found


def _check(root: Path, there: Path) -> None:
    """What is replaced must be a site, and nothing else."""
    inside, outside = there.resolve(), root.resolve()
    if inside.is_relative_to(outside) or outside.is_relative_to(inside):
        raise ParameterError(str(there), f"the site cannot lie in {root}, or around it")
    if there.is_symlink() or (there.exists() and not there.is_dir()):
        raise ParameterError(str(there), "no folder")
    if there.exists() and any(there.iterdir()) and not (there / MARK).is_file():
        raise ParameterError(str(there), f"not empty, and no site of tm3lab's (it has no {MARK})")


def _folder(source: Path, there: Path) -> Results:
    """A results folder without logs and captures; plots and pages anew."""
    there.mkdir(parents=True)
    results = load(source)
    for name in DATA:
        if (source / name).is_file():
            shutil.copyfile(source / name, there / name)
    for figure in results.figures():
        if drawing.draw_one(results, figure, there / "plots") is None:
            _kept(source / "plots" / f"{figure.name}.svg", there / "plots")
    results = replace(results, folder=there)
    found = rows(results)
    summary.write(results, found)
    (there / "report.html").write_text(page.render(results, found, HOME))
    return results


def _kept(plot: Path, there: Path) -> None:
    """A plot of logs that were not kept: as it was drawn then, of what plots consist of."""
    with suppress(FileNotFoundError, NoPlot):
        text = plain(plot.read_text(errors="replace"))
        there.mkdir(exist_ok=True)
        (there / plot.name).write_text(SVG + text.removeprefix("<svg"))
