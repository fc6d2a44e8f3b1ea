# SPDX-License-Identifier: MIT
"""Folders that something is wrong with: who reads one says so in a line, and writes nothing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments import catalogue, report
from experiments.cli import main
from tests.experiments import synthetic


class Small(synthetic.Plain):
    grids = ({"preset": ["wired"], "size": [300_000], "pipes": [1, 8]},)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(catalogue, "of", lambda meta: Small())
    return synthetic.make(tmp_path / "of" / Small.name / "20260101T000000Z-aaa", Small(), 5)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]


def write(folder: Path, records: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(it) + "\n" for it in records)
    (folder / "runs.jsonl").write_text(text)


def another_version(folder: Path) -> None:
    told = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**told, "format": 2}))


def run_of_another_version(folder: Path) -> None:
    write(folder, [{**it, "format": 2} for it in lines(folder)])


def summary_of_more(folder: Path) -> None:
    report.write(folder)
    write(folder, lines(folder)[:4])


def summary_alone(folder: Path) -> None:
    report.write(folder)
    (folder / "runs.jsonl").unlink()


def summary_of_nothing(folder: Path) -> None:
    (folder / "summary.json").write_text("{}")


def without_params(folder: Path) -> None:
    write(folder, [{k: v for k, v in it.items() if k != "params"} for it in lines(folder)])


def without_outcome(folder: Path) -> None:
    write(folder, [{k: v for k, v in it.items() if k != "outcome"} for it in lines(folder)])


def half_of_lateness(folder: Path) -> None:
    late = {"mile down": {"p99": 100}}
    machine = {"late_us": late, "took_s": 1.0, "load": 1.0}
    write(folder, [{**it, "machine": machine} for it in lines(folder)])


def lateness_in_words(folder: Path) -> None:
    write(folder, [{**it, "machine": "not late"} for it in lines(folder)])


WRONG: list[tuple[Callable[[Path], None], str]] = [
    (another_version, "format 2; this version reads 1 only"),
    (run_of_another_version, "runs.jsonl:1: format 2; this version reads 1 only"),
    (summary_of_more, "summary.json is of 10 runs, runs.jsonl has 4: some are lost"),
    (summary_alone, "it has no runs.jsonl"),
    (summary_of_nothing, "summary.json: no summary: KeyError('runs')"),
    (without_params, "no run: it has no params"),
    (without_outcome, "runs.jsonl:1: no run: 'outcome'"),
    (half_of_lateness, "its `machine` does not say how late linkem was"),
    (lateness_in_words, "its `machine` does not say how late linkem was"),
]


@pytest.mark.parametrize(("breaks", "says"), WRONG, ids=[it.__name__ for it, _ in WRONG])
def test_whoever_reads_it_says_so_in_a_line(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    breaks: Callable[[Path], None],
    says: str,
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(folder, whole)
    breaks(folder)
    before = {it: it.read_bytes() for it in folder.rglob("*") if it.is_file()}
    there, good = str(folder), str(whole)
    for command in (
        ["report", there],
        ["plot", there],
        ["compare", there, good],
        ["compare", good, there],
        ["publish", str(tmp_path / "site"), "--of", str(folder.parents[1])],
    ):
        capsys.readouterr()
        assert main(command) == 1, command
        told = capsys.readouterr()
        assert says in told.err, (command, told.err)
        assert told.err.count("tm3lab: ") - told.err.count(f"1/1: {Small.name}") == 1
        assert "Traceback" not in told.err and told.out == ""
    assert {it: it.read_bytes() for it in folder.rglob("*") if it.is_file()} == before
    assert not (tmp_path / "site").exists()


def test_runs_without_lateness_are_told_of(folder: Path) -> None:
    """From before it was kept, or of links that do not tell: a report, with a sentence."""
    said = "No run says how late the links were: nobody knows if the machine kept up."
    assert said in " ".join(report.table(folder).split())
    machine = {"late_us": {"mile down": {"p99": 9, "max": 99}}, "took_s": 1.0, "load": 1.0}
    write(
        folder, [{**it, "machine": machine} if k > 2 else it for k, it in enumerate(lines(folder))]
    )
    assert "Not every run (3 do not) says how late" in " ".join(report.table(folder).split())
    write(folder, [{**it, "machine": machine} for it in lines(folder)])
    assert "nobody knows" not in report.table(folder)
