# SPDX-License-Identifier: MIT
"""What is kept in results/curated points to nothing that is not there."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments import curated, kept, meta
from experiments.folder import FolderError
from experiments.summaries import RESULTS
from tests.experiments.synthetic import planned


def runs(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]


def test_what_is_kept_points_to_nothing_else(tmp_path: Path) -> None:
    folder = planned(tmp_path / "made")
    assert any(run["logs"] for run in runs(folder))
    (folder / "plots").mkdir()
    (folder / "plots" / "one.svg").write_text("<svg/>")
    into = kept.add(folder, tmp_path)
    assert into == tmp_path / "curated" / "synthetic-plain" / "one"
    assert not any(run["logs"] for run in runs(into)) and not kept.lost(into)
    gone = [{**run, "logs": None, "pcaps": None} for run in runs(folder)]
    assert [{"pcaps": None, **run} for run in runs(into)] == gone, "all else is as it was"
    there = {it.name for it in into.iterdir()}
    assert there == {"meta.json", "runs.jsonl", "plots", "report.html", "summary.json"}
    assert (into / "plots" / "one.svg").read_text() == "<svg/>"
    with pytest.raises(FolderError, match="is there already"):
        kept.add(folder, tmp_path)


def test_what_is_there_is_pointed_to(tmp_path: Path) -> None:
    folder = planned(tmp_path)
    before = (folder / "runs.jsonl").read_text()
    logs = [run["logs"] for run in runs(folder) if run["logs"]]
    for it in logs:
        (folder / it).mkdir(parents=True, exist_ok=True)
    assert not kept.lost(folder)
    kept.unlink(folder)
    assert (folder / "runs.jsonl").read_text() == before
    (folder / logs[0]).rename(folder / "elsewhere")
    assert kept.lost(folder)
    then = (folder / "runs.jsonl").stat().st_mtime_ns
    kept.unlink(folder)
    assert [run["logs"] for run in runs(folder) if run["logs"]] == logs[1:]
    assert (folder / "runs.jsonl").stat().st_mtime_ns == then, "nothing was measured since"


def test_a_pointer_that_leads_nowhere_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    into = kept.add(planned(tmp_path / "made"), tmp_path)
    monkeypatch.setattr(curated, "RESULTS", tmp_path)
    assert curated.main(["--write"]) == 0
    first, *rest = (into / "runs.jsonl").read_text().splitlines(keepends=True)
    lost = json.dumps(json.loads(first) | {"logs": "logs/gone"}) + "\n"
    (into / "runs.jsonl").write_text("".join([lost, *rest]))
    assert curated.main([]) == 1 and "points to logs" in capsys.readouterr().err
    assert curated.main(["--reports"]) == 0


@pytest.mark.parametrize("folder", kept.folders(RESULTS), ids=lambda it: it.parent.name)
def test_nothing_curated_points_elsewhere(folder: Path) -> None:
    assert not kept.lost(folder)


@pytest.mark.parametrize("folder", kept.folders(RESULTS), ids=lambda it: it.parent.name)
def test_nothing_curated_names_where_it_was_written(folder: Path) -> None:
    """Labs' records have commands, too."""
    assert '"--results' not in (folder / "meta.json").read_text()


@pytest.mark.parametrize("given", [["--results", "DIR"], ["--results=DIR"], []])
def test_a_command_is_kept_without_that(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tm3lab", "run", "udp", *given, "--quick"])
    assert meta.command_line() == ["tm3lab", "run", "udp", "--quick"]
