# SPDX-License-Identifier: MIT
"""Plots of folders whose logs are gone, as those of results/curated: none goes or gets poorer."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import kept, plots, report
from experiments.cli import main
from experiments.model import Figure
from experiments.plots import drawing, series
from experiments.report import kinds
from experiments.report.data import load
from experiments.site import publish
from tests.experiments import synthetic
from tests.experiments.drawn import words_of

WINDOWS = "window [segments]"


class Told(synthetic.Download):
    """Runs that measured a series themselves, over proxies that wrote statistics."""

    grids = ({"pipes": [4]}, {"way": ["direct"]})
    figures = (
        Figure("time", "Time", "against", x="pipes"),
        Figure("series", "Rates and windows", "series", y="app_mbps", where={"way": "pipes"}),
        Figure("direct", "Rates without pipes", "series", y="app_mbps", where={"way": "direct"}),
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = synthetic.make(tmp_path / "A", Told(), 2)
    text = (made / "runs.jsonl").read_text()
    more = '"measures": {"app_mbps": [1.0, 9.0], "series_step_s": 0.5, '
    (made / "runs.jsonl").write_text(text.replace('"measures": {', more))
    monkeypatch.setattr(kinds, "in_catalogue", lambda _: Told())
    return made


def without_logs(folder: Path) -> Path:
    shutil.rmtree(folder / "logs")
    kept.unlink(folder)
    assert not any(run.logs for run in load(folder).runs)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {it.name: it.read_bytes() for it in (folder / "plots").iterdir()}


def test_what_needs_logs_stays_as_it_was_drawn_and_is_named(folder: Path) -> None:
    drawing.draw_all(load(folder))
    before = files(folder)
    assert WINDOWS in " ".join(words_of(folder / "plots" / "series.svg"))
    said: list[str] = []
    drawn = drawing.draw_all(load(without_logs(folder)), said.append)
    assert files(folder) == before
    assert [it.stem for it in drawn] == ["time", "direct"], "direct has no proxies"
    (line,) = said
    assert line.startswith(f"{folder / 'plots' / 'series.svg'}: stays as it is: ")
    assert line.endswith("statistics of the proxies, and this folder has no logs")


def test_what_was_never_drawn_is_drawn_in_part_and_says_so(folder: Path) -> None:
    said: list[str] = []
    drawing.draw_all(load(without_logs(folder)), said.append)
    told = " ".join(words_of(folder / "plots" / "series.svg"))
    assert "Mbit/s" in told and WINDOWS not in told
    assert len(said) == 1 and "series.svg: drawn in part: " in said[0]


def test_a_report_and_a_site_have_what_was_drawn_then(folder: Path, tmp_path: Path) -> None:
    drawing.draw_all(load(folder))
    before = (folder / "plots" / "series.svg").read_bytes()
    without_logs(folder)
    for it in (folder / "plots").iterdir():
        os.utime(it, (1, 1))  # a checkout makes files in any order
    page = report.write(folder).read_text()
    assert page.count('<figure class="plot"><svg') == len(Told.figures)
    assert (folder / "plots" / "series.svg").read_bytes() == before
    publish._folder(folder, tmp_path / "site")
    assert WINDOWS in " ".join(words_of(tmp_path / "site" / "plots" / "series.svg"))


def test_a_file_that_goes_is_named(folder: Path) -> None:
    (folder / "plots").mkdir(exist_ok=True)
    for name in ("old.svg", "old.png", "by-hand.txt"):
        (folder / "plots" / name).write_text("")
    said: list[str] = []
    drawing.draw_all(load(folder), said.append)
    assert said == [
        f"{folder / 'plots' / name}: removed: no such figure" for name in ("old.png", "old.svg")
    ]


def test_the_command_says_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plots.draw(folder)
    without_logs(folder)
    capsys.readouterr()
    assert main(["plot", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert [Path(line).stem for line in out.splitlines()] == ["time", "direct"]
    assert "series.svg: stays as it is" in err


def test_statistics_of_the_first_that_has_some(folder: Path) -> None:
    """Logs of a run that failed show nothing of one that succeeded."""
    (it,) = [each for each in load(folder).configurations if each.params["way"] == "pipes"]
    first, second = it.runs
    assert series._first(it) is first and first.logs and not second.logs
    kept_all = replace(second, logs=f"logs/{second.id}")
    assert series._first(replace(it, runs=(replace(first, logs=None), kept_all))) is kept_all
    failed = replace(first, outcome="failed")
    assert series._first(replace(it, runs=(failed, second))) is second
