# SPDX-License-Identifier: MIT
"""The report of folders made up for it: complete, escaped, alone, and honest about failures."""

import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiments import catalogue, plots, report
from experiments.folder import FolderError
from experiments.model import Experiment, Metric
from experiments.report import conclusions, rows, text
from experiments.report.data import load
from tests.experiments import synthetic
from topologies.parameter import Params

VOID = {"meta", "link", "br", "img", "line", "circle", "path", "input"}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue has the made-up experiment too."""
    true_of = catalogue.of

    def of(meta: dict) -> Experiment:
        made_up = {it.name: it for it in (synthetic.Download(), synthetic.Plain())}
        return made_up.get(meta["experiment"]) or true_of(meta)

    monkeypatch.setattr(catalogue, "of", of)


def some_fail(params: Params, rep: int) -> bool:
    return params["preset"] == "lossy" and params["pipes"] == 4 and rep < 7


class Balance(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"]] if given.get("id") else []
        self.links += [v for k, v in attrs if k in ("href", "src", "xlink:href") and v]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, f"{tag} is closed out of order"


def checked(page: str) -> Balance:
    """Parses it; fails on what reaches out, names twice or is not closed."""
    found = Balance()
    found.feed(page)
    assert not found.open
    assert len(found.ids) == len(set(found.ids)), "an id twice"
    for link in found.links:
        assert link.startswith(("#", "logs/")) or link.endswith("report.html"), link
    assert not re.search(r"url\((?!#)|@import|<script|<link", page)
    assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    return synthetic.make(root / synthetic.Download.name / "A", fails=some_fail)


def test_report_has_it_all_and_stands_alone(folder: Path) -> None:
    page = report.write(folder).read_text()
    checked(page)
    for claim in synthetic.Download.claims:
        assert claim.says in page
    assert page.index("Beside the published figures") < page.index("What can be concluded")
    for figure in synthetic.Download.figures:
        assert f'aria-label="{figure.title}"' in page
        svg = folder / "plots" / f"{figure.name}.svg"
        assert svg.is_file() and svg.with_suffix(".png").is_file()
    for word in ("6.18.0", "0123456789abcdef", "linkem", "A processor &amp; its caches"):
        assert word in page
    assert "git checkout 0123456789ab" in page
    assert f"sudo build/tm3lab run {synthetic.Download.name} --reps 10" in page


def test_errors_are_escaped_and_told(folder: Path) -> None:
    page = report.write(folder).read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "14 of 200 runs failed" in page
    assert "byte 17 is 0x00, not 0x2a" in page
    assert re.search(r'href="logs/[^"]+/"', page) is None, "logs that are not there are not linked"


def test_plots_are_drawn_again_when_runs_came_later(folder: Path) -> None:
    report.write(folder)
    svg = folder / "plots" / "pipes.svg"
    runs = folder / "runs.jsonl"
    svg.write_text('<svg xmlns="http://www.w3.org/2000/svg"><text>old</text></svg>')
    os.utime(svg, (1, 1))
    report.write(folder)
    assert "old" not in svg.read_text()
    before = svg.stat().st_mtime_ns
    assert svg.stat().st_mtime > runs.stat().st_mtime
    report.write(folder)
    assert svg.stat().st_mtime_ns == before, "drawn without need"


def test_a_plot_of_logs_that_are_gone_stays(folder: Path) -> None:
    """Curated folders have no logs, and a checkout makes files in any order."""
    report.write(folder)
    shutil.rmtree(folder / "logs")
    before = {name: (folder / "plots" / f"{name}.svg") for name in ("series", "pipes")}
    before["pipes"].unlink()
    text = before["series"].read_text()
    for svg in (folder / "plots").iterdir():
        os.utime(svg, (1, 1))
    plots.draw(folder)
    assert before["series"].read_text() == text and before["pipes"].is_file()
    page = report.write(folder).read_text()
    assert page.count('<figure class="plot"><svg') == len(load(folder).figures())
    assert "Not drawn" not in page


def test_summary_is_json_without_infinity(folder: Path) -> None:
    report.write(folder)
    told = json.loads((folder / "summary.json").read_text(), parse_constant=pytest.fail)
    assert told["format"] == 1 and told["runs"] == 200 and told["failed"] == 14
    assert [it["verdict"] for it in told["comparison"]] == ["yes", "yes", "yes", "none"]
    first = told["comparison"][0]
    assert first["paper"] == 0.47 and first["n"] == 10 and first["kind"] == "paired ratio"
    assert first["low"] < first["median"] < first["high"] < 1
    lost = next(
        it
        for it in told["configurations"]
        if it["params"] == {"way": "pipes", "pipes": 4, "preset": "lossy", "size": 50_000}
    )
    assert lost["failed"] == 7
    assert lost["metrics"]["completion_s"]["median"] is None
    assert lost["metrics"]["completion_s"]["n"] == 10


def test_table_for_the_terminal(folder: Path) -> None:
    told = report.table(folder, width=100)
    assert max(map(len, told.splitlines())) <= 100
    assert re.search(r"4 pipes +10 +7 +∞", told)
    assert "8 pipes are faster than 1 pipe" in told
    assert "Not among these runs: a size that was not run (Fig. 9)." in told


def test_verdicts_are_whole_in_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside words in place of an interval the last column was cut: `~ not deci`."""
    told = "no interval; repeats of one session, 0.0567 to 0.0573"
    monkeypatch.setattr(rows.Row, "interval", told)
    monkeypatch.setattr(rows.Row, "size_says", "✗ the other way")
    lines = report.table(folder, width=100).splitlines()
    assert max(map(len, lines)) <= 100
    heads = next(k for k, line in enumerate(lines) if line.startswith("published "))
    assert lines[heads].endswith("same direction?       same size?")
    assert lines[heads + 2].endswith("✗ the other way")


def test_no_run_succeeded(tmp_path: Path) -> None:
    made = synthetic.make(
        tmp_path / "all-failed", synthetic.Plain(), 3, fails=lambda params, rep: True
    )
    page = report.write(made).read_text()
    checked(page)
    assert "No run succeeded" in page
    assert "Nothing to draw" in page
    assert "60 of 60 runs failed" in page
    assert "∞" in report.table(made)
    assert not list((made / "plots").glob("*"))


def test_no_run_at_all(tmp_path: Path) -> None:
    made = synthetic.make(tmp_path / "empty", synthetic.Plain(), 0)
    page = report.write(made).read_text()
    checked(page)
    assert "No run succeeded" in page
    assert "None of 0 runs" in page


def test_interrupted_runs_are_not_failures(tmp_path: Path) -> None:
    made = synthetic.make(tmp_path / "cut", synthetic.Plain(), 2)
    lines = (made / "runs.jsonl").read_text().splitlines()
    first = {**json.loads(lines[0]), "outcome": "interrupted", "completion_s": None}
    lines[0] = json.dumps(first)
    (made / "runs.jsonl").write_text("\n".join(lines) + "\n")
    results = load(made)
    assert (len(results.runs), len(results.failed), results.interrupted) == (39, 0, 1)


def test_an_experiment_that_is_not_in_the_catalogue(tmp_path: Path) -> None:
    made = synthetic.make(tmp_path / "odd", synthetic.Plain(), 5)
    meta = json.loads((made / "meta.json").read_text())
    (made / "meta.json").write_text(json.dumps({**meta, "experiment": "forgotten"}))
    results = load(made)
    assert not results.known and results.name == "forgotten"
    page = report.write(made).read_text()
    checked(page)
    assert "Nothing was published" in page
    assert sorted(it.name for it in (made / "plots").glob("*.svg")) == ["main.svg", "spread.svg"]


@pytest.mark.parametrize("name", ["meta.json", "runs.jsonl"])
@pytest.mark.parametrize("told", [0, 2, None, "1"])
def test_another_format_is_refused(tmp_path: Path, name: str, told: object) -> None:
    made = synthetic.make(tmp_path / "old", synthetic.Plain(), 1)
    path = made / name
    if name == "meta.json":
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": told}))
    else:
        lines = path.read_text().splitlines()
        lines[3] = json.dumps({**json.loads(lines[3]), "format": told})
        path.write_text("\n".join(lines) + "\n")
    for read in (report.write, report.table):
        with pytest.raises(FolderError, match="format"):
            read(made)


def test_no_folder_of_results(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"meta\.json"):
        report.write(tmp_path)


def test_index_over_several(folder: Path, tmp_path: Path) -> None:
    other = synthetic.make(folder.parent / "B", synthetic.Plain(), 5)
    meta = json.loads((other / "meta.json").read_text())
    (other / "meta.json").write_text(json.dumps({**meta, "experiment": "synthetic-download"}))
    report.write(folder)
    path = report.index([folder, other])
    assert path == folder.parent.parent / "index.html"
    page = path.read_text()
    checked(page)
    assert f"{synthetic.Download.name}/A/report.html" in page, "the fullest counts"
    assert f"{synthetic.Download.name}/B/report.html" not in page
    assert "thirty pages" in page, "a published row that was not run is named"


def test_reasons_come_from_the_runs(tmp_path: Path) -> None:
    """Where the direction does not hold: the floor, what else was measured, and notes."""
    made = synthetic.make(tmp_path / "slow", synthetic.Plain())
    lines = [json.loads(line) for line in (made / "runs.jsonl").read_text().splitlines()]
    for line in lines:  # eight pipes become slower than one
        if line["params"]["pipes"] == 8:
            line["completion_s"] = line["measures"]["completion_s"] = 9.0
            line["links"] = {"mile down": {"dropped_queue_packets": 21}}
        else:
            line["links"] = {"mile down": {"dropped_queue_packets": 0}}
    (made / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (made / "notes.json").write_text(
        json.dumps({"Fig. 9: 8 pipes instead of 1, 300 KB": "The capture shows a probe."})
    )
    found = rows.rows(load(made))
    assert [row.verdict for row in found] == ["no", "no", "yes", "none"]
    assert found[0].causes[-1] == "The capture shows a probe."
    assert "dropped at a full queue 0 → 21 packets" in found[0].why[-1]
    assert "at most" in found[1].why[0] and "gained" in found[1].why[0]
    page = report.write(made).read_text()
    assert "The capture shows a probe." in page


def test_few_runs_conclude_nothing(tmp_path: Path) -> None:
    results = load(synthetic.make(tmp_path / "few", synthetic.Plain(), 3))
    assert {row.verdict for row in rows.rows(results)[:2]} == {"few"}
    told = " ".join(conclusions.sentences(results))
    assert "Nothing can be said of 8 pipes against 1 pipe from 3 pairs (5 would do)" in told
    assert "faster" not in told
    assert re.search(r"\(\d\.\d+ to \d\.\d+\)", text.of(results)), "a range is in brackets"


def test_conclusions_are_right(folder: Path) -> None:
    told = conclusions.sentences(load(folder))
    assert told[0].startswith("20 configurations with 10 runs each, 200 in all; 14 failed")
    assert told[1].startswith("8 pipes are faster than 1 pipe: 0.51 (95\N{NO-BREAK SPACE}%")
    assert "on lossy, 300\N{NO-BREAK SPACE}KB" in told[1]


def test_conclusions_without_pipes_in_the_sweep(tmp_path: Path) -> None:
    class Rate(synthetic.Download):
        grids = ({"preset": ["wired", "lossy"], "pipes": [4], "size": [300_000]},)
        metrics = (Metric("goodput_mbps", "goodput", "Mbit/s", "more"),)
        claims = ()

    made = synthetic.make(tmp_path / "rate", Rate())
    told = " ".join(conclusions.sentences(synthetic.loaded(made, Rate())))
    assert "Goodput: smaller with lossy than with wired: 0." in told


def test_many_settings_with_few_runs_each_are_taken_together(tmp_path: Path) -> None:
    """One run of each of eight pages says nothing of a page, but something of pages."""

    class Pages(synthetic.Plain):
        grids = (
            {
                "page": [f"p{n}" for n in range(8)],
                "binding": ["late", "early"],
                "preset": ["lossy"],
                "pipes": [1, 8],
            },
        )
        claims = ()

    made = synthetic.make(tmp_path / "pages", Pages(), 1)
    told = " ".join(conclusions.sentences(synthetic.loaded(made, Pages())))
    assert told.count("(taken over every page)") == 2, "late and early binding are not mixed"
    assert "8 pipes are faster than 1 pipe" in told
