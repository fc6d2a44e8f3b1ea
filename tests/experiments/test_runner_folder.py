# SPDX-License-Identifier: MIT
"""A folder of results: what is in it after a crash, what a resumed sweep does, what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import campaign, parameters
from experiments.folder import FORMAT, FolderError, Results, find
from experiments.plan import Plan

COMMIT = "0123456789abcdef"
PLAN = Plan(
    "download",
    tuple(parameters.complete((), {"pipes": pipes}) for pipes in (1, 8)),
    reps=3,
    seed=1,
    limit_s=30.0,
)


def made(root: Path) -> Results:
    return Results.create(root, "download", COMMIT, {"plan": PLAN.as_dict(), "commit": COMMIT})


def record(name: str, **more: Any) -> dict[str, Any]:
    return {"format": FORMAT, "id": name, "outcome": "ok", **more}


def test_names_sort_by_time_and_never_meet(tmp_path: Path) -> None:
    paths = [made(tmp_path).path for _ in range(3)]
    assert len(set(paths)) == 3
    assert all("-0123456789" in path.name for path in paths)
    assert set(find(tmp_path, "download")) == set(paths)


def test_what_was_appended_is_there_at_once(tmp_path: Path) -> None:
    results = made(tmp_path)
    results.append(record("a"))
    again = Results.open(results.path)
    assert again.done() == {"a"}
    assert again.plan == PLAN


def test_a_run_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    results = made(tmp_path)
    ids = [run.id for run in PLAN.runs()]
    assert results.unfinished() == len(ids) == 6
    for name in (ids[0], ids[3]):
        results.append(record(name))
    results.append(record(ids[4], outcome="failed"))
    assert results.unfinished() == 3


@settings(deadline=None)
@given(st.integers(0, 200))
def test_a_line_that_a_crash_cut_short_is_no_run(tmp_path_factory: Any, cut: int) -> None:
    results = made(tmp_path_factory.mktemp("cut"))
    results.append(record("a"))
    results.append(record("b", measures={"x": 1}))
    path = results.path / "runs.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    kept = sum(1 for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n"))
    assert len(results.runs()) == kept
    with results.locked():
        results.append(record("c"))
    assert [run["id"] for run in results.runs()] == [*["a", "b"][:kept], "c"]


def test_scratch_of_unfinished_runs_goes(tmp_path: Path) -> None:
    results = made(tmp_path)
    results.append(record("done"))
    for name in ("done", "begun"):
        (results.path / "logs" / name).mkdir(parents=True)
    with results.locked():
        assert [path.name for path in (results.path / "logs").iterdir()] == ["done"]


def test_only_one_writes(tmp_path: Path) -> None:
    results = made(tmp_path)
    with results.locked():
        with pytest.raises(FolderError, match="another tm3lab writes"):
            with Results.open(results.path).locked():
                pass
    with results.locked():
        pass


@pytest.mark.parametrize("told", [0, FORMAT + 1, None, "1"])
def test_another_format_is_refused(tmp_path: Path, told: Any) -> None:
    results = made(tmp_path)
    meta = results.path / "meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "format": told}))
    with pytest.raises(FolderError, match=rf"format {told!r}; this version reads {FORMAT} only"):
        Results.open(results.path)


def test_a_run_of_another_format_is_refused(tmp_path: Path) -> None:
    results = made(tmp_path)
    results.append(record("a"))
    results.append({**record("b"), "format": FORMAT + 1})
    with pytest.raises(FolderError, match=r"runs\.jsonl:2: format 2"):
        results.runs()


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"plan": {}}'])
def test_what_is_no_folder_of_results_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(FolderError, match="no folder of results"):
        Results.open(tmp_path)
    (tmp_path / "meta.json").write_text(text)
    with pytest.raises(FolderError):
        Results.open(tmp_path)


def test_a_plan_that_lacks_something_is_told(tmp_path: Path) -> None:
    results = Results.create(tmp_path, "download", None, {"plan": {"experiment": "download"}})
    with pytest.raises(FolderError, match="lacks 'reps'"):
        _ = results.plan


@pytest.mark.timeout(20)
@pytest.mark.parametrize("change", [{"reps": 10**18}, {"seed": -1}, {"limit_s": 1e300}])
def test_a_plan_that_nobody_can_carry_out_is_told(tmp_path: Path, change: dict[str, Any]) -> None:
    """Of a folder that somebody else made: neither an hour's loop nor a traceback."""
    results = made(tmp_path)
    results.meta["plan"] |= change
    with pytest.raises(FolderError, match=rf"meta\.json: {next(iter(change))}: .* is not from "):
        results.unfinished()


@pytest.mark.parametrize("line", ["not json", '{"id": "a"}', "[1]", "null"])
def test_a_line_that_is_no_run_is_named(tmp_path: Path, line: str) -> None:
    results = made(tmp_path)
    with (results.path / "runs.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(FolderError, match=r"runs\.jsonl:1: no run"):
        results.runs()


def test_numbers_that_are_none_are_not_written(tmp_path: Path) -> None:
    results = made(tmp_path)
    with pytest.raises(ValueError, match="Out of range"):
        results.append(record("a", completion_s=float("nan")))
    assert results.runs() == []


def test_the_same_plan_by_the_same_sources_is_continued(tmp_path: Path) -> None:
    results = made(tmp_path)
    assert found(tmp_path, results.meta["commit"]) == results.path
    assert found(tmp_path, "another") is None
    assert found(tmp_path, results.meta["commit"], replace(PLAN, reps=4)) is None
    for run in PLAN.runs():
        results.append(record(run.id))
    assert found(tmp_path, results.meta["commit"]) is None


def found(root: Path, commit: str, plan: Plan = PLAN) -> Path | None:
    there = campaign.unfinished(root, plan, commit)
    return there.path if there else None


def test_a_plan_made_longer_is_resumed_and_told(tmp_path: Path) -> None:
    results = made(tmp_path)
    results.meta["command"] = [
        "tm3lab",
        "run",
        "download",
        "--reps=3",
        "--size",
        "1KB",
        "--reps",
        "4",
    ]
    for run in PLAN.runs():
        results.append(record(run.id))
    assert not results.unfinished()
    results.replan(PLAN.longer(PLAN.reps + 2, None, 0.0))
    again = Results.open(results.path)
    assert again.unfinished() == 2 * len(PLAN.configurations)
    longer = ["--reps", str(PLAN.reps + 2), "--sessions", "1"]
    assert again.meta["command"] == ["tm3lab", "run", "download", "--size", "1KB", *longer]
    again.replan(again.plan.longer(None, 3, 5400.0))
    assert Results.open(results.path).meta["command"][-4:] == ["--sessions", "3", "--apart", "90"]


def test_files_are_named_within_the_folder_and_the_project(tmp_path: Path) -> None:
    results = made(tmp_path)
    project = Path(__file__).resolve().parents[2]
    results.meta["argv"] = [f"{project}/build/rp", f"{results.path}/logs/0/rp.jsonl"]
    results.save()
    with results.locked():
        results.append(record("0", error=f"{results.path}/logs/0/rp.log: it ended"))
    assert Results.open(results.path).meta["argv"] == ["build/rp", "logs/0/rp.jsonl"]
    assert results.runs()[0]["error"] == "logs/0/rp.log: it ended"


def test_a_folder_is_named_as_where_results_go(tmp_path: Path, monkeypatch: Any) -> None:
    """Where one was that is gone on with is of one machine."""
    monkeypatch.chdir(tmp_path)
    path = made(tmp_path / "elsewhere").path
    for said in (path, path.relative_to(tmp_path)):
        results = Results.open(said)
        results.meta["command"] = ["tm3lab", "resume", str(said), f"{said}-beside"]
        results.save()
        there = Results.open(path).meta["command"]
        assert there == ["tm3lab", "resume", f"results/download/{path.name}", f"{said}-beside"]


def test_only_what_was_made_is_handed_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Path] = []
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setenv("SUDO_GID", "1000")
    monkeypatch.setattr("os.chown", lambda path, *_, **__: given.append(Path(path)))
    results = made(tmp_path)
    results.hand_back()
    assert tmp_path not in given and tmp_path / "download" in given
    given.clear()
    Results.open(results.path).hand_back()
    assert results.path in given and tmp_path / "download" not in given
