# SPDX-License-Identifier: MIT
"""Sweeps that are done by parts: what is merged, and that it stays within its folder."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments import campaign, catalogue, merge, parameters
from experiments.campaign import How
from experiments.cli import main
from experiments.folder import FORMAT, FolderError, Results
from experiments.plan import Plan, Run
from experiments.progress import Progress

OWN = catalogue.find("download").parameters
CONFIGURATIONS = tuple(parameters.complete(OWN, {"pipes": pipes}) for pipes in (1, 8))
PLAN = Plan("download", CONFIGURATIONS, reps=5, seed=1, limit_s=30.0)


def part(root: Path, first: int, every: int, plan: Plan = PLAN, commit: str = "abc") -> Results:
    """As `--part first/every` leaves it."""
    meta = {
        "experiment": "download",
        "plan": plan.as_dict(),
        "commit": commit,
        "sessions": [{"host": f"host{first}", "pid": 0, "ended": 1.0}],
    }
    results = Results.create(root, "download", commit, meta)
    how = How(part=(first, every))
    for run in plan.runs():
        if how.has(run):
            logs = results.path / "logs" / run.id
            logs.mkdir(parents=True)
            (logs / "rp.log").write_text(run.id)
            record = {"format": FORMAT, "id": run.id, "outcome": "ok", "logs": f"logs/{run.id}"}
            record |= {"params": run.params, "seed": run.seed, "rep": run.rep, "took_s": 1.0}
            results.append({**record, "completion_s": 1.0, "host": f"host{first}"})
    return results


def test_parts_make_a_whole(tmp_path: Path) -> None:
    parts = [part(tmp_path, first, 3) for first in (1, 2, 3)]
    assert [results.unfinished() for results in parts] == [6, 6, 8]
    whole = merge.merge([results.path for results in parts], tmp_path)
    assert whole.unfinished() == 0
    assert len(whole.runs()) == len(PLAN)
    assert {record["host"] for record in whole.runs()} == {"host1", "host2", "host3"}
    for run in PLAN.runs():
        assert (whole.path / "logs" / run.id / "rp.log").read_text() == run.id
    assert [session["host"] for session in whole.meta["sessions"]] == ["host1", "host2", "host3"]


def test_a_part_twice_counts_once(tmp_path: Path) -> None:
    paths = [part(tmp_path, 1, 2).path, part(tmp_path, 1, 2).path]
    assert len(merge.merge(paths, tmp_path).runs()) == 6


def test_what_is_of_another_plan_or_commit_is_not_merged(tmp_path: Path) -> None:
    one = part(tmp_path, 1, 2).path
    other = Plan("download", CONFIGURATIONS, reps=5, seed=2, limit_s=30.0)
    with pytest.raises(FolderError, match="is of another plan than"):
        merge.merge([one, part(tmp_path, 2, 2, other).path], tmp_path)
    with pytest.raises(FolderError, match="is of another commit than"):
        merge.merge([one, part(tmp_path, 2, 2, commit="abd").path], tmp_path)
    assert len(list(tmp_path.glob("download/*"))) == 3


# --- folders that somebody else made ---


@pytest.fixture
def theirs(tmp_path: Path) -> Results:
    """A whole plan, done elsewhere, beside which something lies that is not theirs to touch."""
    (tmp_path / "theirs" / "payload").mkdir(parents=True)
    (tmp_path / "secret").write_text("of the machine's own")
    return part(tmp_path / "theirs", 1, 1)


def change(results: Results, name: str, **changes: Any) -> None:
    path = results.path / name
    first, *rest = path.read_text().splitlines() if name.endswith("l") else [path.read_text()]
    path.write_text("\n".join([json.dumps({**json.loads(first), **changes}), *rest, ""]))


def refused(results: Results, root: Path, why: str) -> None:
    """And nothing is made, here or elsewhere."""
    before = sorted(root.rglob("*"))
    with pytest.raises(FolderError, match=why):
        merge.merge([results.path], root / "merged")
    assert sorted(root.rglob("*")) == before
    assert main(["merge", str(results.path), "--results", str(root / "merged")]) == 1
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("kind", ["logs", "pcaps"])
@pytest.mark.parametrize("to", ["../payload", "../../payload", "/etc", ".", "", 3, ["logs"]])
def test_files_of_a_run_lie_in_the_folder(
    theirs: Results, tmp_path: Path, kind: str, to: Any
) -> None:
    change(theirs, "runs.jsonl", **{kind: to})
    refused(theirs, tmp_path, rf"runs\.jsonl:1: its {kind} are in ")


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", "/x", 1, None])
def test_a_run_has_the_name_of_a_file(theirs: Results, tmp_path: Path, name: Any) -> None:
    change(theirs, "runs.jsonl", id=name, logs=f"logs/{name}")
    refused(theirs, tmp_path, r"runs\.jsonl:1: no run: its id is ")


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "", "..", 3])
def test_an_experiment_has_the_name_of_a_file(theirs: Results, tmp_path: Path, name: Any) -> None:
    change(theirs, "meta.json", plan={**PLAN.as_dict(), "experiment": name})
    refused(theirs, tmp_path, "is no name of an experiment")


@pytest.mark.parametrize("commit", ["/../../../x", "../x", 3])
def test_a_commit_is_a_word(theirs: Results, tmp_path: Path, commit: Any) -> None:
    change(theirs, "meta.json", commit=commit)
    refused(theirs, tmp_path, "is no commit")


def first_log(results: Results) -> Path:
    return results.path / results.runs()[0]["logs"]


def link_a_file(results: Results) -> None:
    (first_log(results) / "rp.stats").symlink_to(results.path.parents[2] / "secret")


def link_the_folder(results: Results) -> None:
    where = first_log(results)
    where.rename(results.path / "aside")
    where.symlink_to(results.path.parents[2])


def link_all_logs(results: Results) -> None:
    (results.path / "logs").rename(results.path / "aside")
    (results.path / "logs").symlink_to(results.path.parents[2])


def fifo(results: Results) -> None:
    os.mkfifo(first_log(results) / "waits")


@pytest.mark.parametrize("do", [link_a_file, link_the_folder, link_all_logs, fifo])
def test_only_files_are_copied(
    theirs: Results, tmp_path: Path, do: Callable[[Results], None]
) -> None:
    do(theirs)
    why = "a symbolic link" if do is link_all_logs else "neither a file nor a folder"
    refused(theirs, tmp_path, why)


@pytest.mark.parametrize("name", ["logs", "pcaps", "plots", "report.html", "meta.json.new"])
def test_nothing_is_written_or_deleted_through_a_link(
    theirs: Results, tmp_path: Path, name: str
) -> None:
    """resume deletes what is in logs and of no run; report and plot write."""
    precious = tmp_path / "precious" / "folder" / "file"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    there = theirs.path / name
    if there.is_dir():
        there.rename(theirs.path / "aside")
    there.symlink_to(precious if "." in name else precious.parents[1])
    for command in ("resume", "report", "plot"):
        assert main([command, str(theirs.path)]) == 1
        assert precious.read_text() == "mine"


def test_progress_counts_the_runs_of_the_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []

    def here(runs: Any, left: list[Run], bar: Progress, *_: Any) -> None:
        told.append((len(left), bar.total))

    monkeypatch.setattr(campaign, "_here", here)
    meta = {"experiment": "download", "plan": PLAN.as_dict(), "commit": "abc"}
    results = Results.create(tmp_path, "download", "abc", meta)
    for first in (1, 2):
        campaign.run(catalogue.find("download"), results, How(part=(first, 2), calibrate=False))
    assert told == [(6, 6), (4, 4)]
