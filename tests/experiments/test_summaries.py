# SPDX-License-Identifier: MIT
"""Of several folders of an experiment, which one speaks for it, and which one answers a claim."""

import json
from pathlib import Path
from typing import Any

from experiments import summaries


def folder(root: Path, name: str, **verdicts: str) -> None:
    claims: list[dict[str, Any]] = [
        {"where": "Fig. 1", "says": says, "metric": "s", "verdict": verdict, "median": name}
        for says, verdict in verdicts.items()
    ]
    at = root / "curated" / "toy" / name
    at.mkdir(parents=True)
    (at / "summary.json").write_text(json.dumps({"folder": name, "runs": 3, "comparison": claims}))


def test_the_fullest_has_the_configurations_and_the_newest_answers(tmp_path: Path) -> None:
    folder(tmp_path, "1", one="yes", other="no")
    folder(tmp_path, "2", one="unclear", other="none")
    folder(tmp_path, "3", one="few", other="none")
    found = summaries.fullest(tmp_path, "toy")
    assert found is not None and found["folder"] == "1"
    answers = {it: summaries.newest_answer(tmp_path, "toy", it) for it in ("one", "other", "none")}
    assert answers["one"] is not None and answers["one"]["median"] == "2"
    assert answers["other"] is not None and answers["other"]["median"] == "1"
    assert answers["none"] is None
    assert summaries.newest_answer(tmp_path, "another", "one") is None


def test_each_claim_is_answered_by_the_newest_that_does(tmp_path: Path) -> None:
    """Runs of blocking a week newer, by another engine, were on no page: an older folder answers
    more claims."""
    folder(tmp_path, "1", one="yes", two="no", three="yes", never="none", barely="few")
    folder(tmp_path, "2", one="unclear", two="none", three="few", never="none", barely="few")
    folder(tmp_path, "3", one="no", two="none", three="none", never="none", barely="none")
    found = summaries.answers(tmp_path, "toy")
    said = {
        says: (summary["folder"], it["median"]) for (_, says, _), (summary, it) in found.items()
    }
    assert said == {
        **{"one": ("3", "3"), "two": ("1", "1"), "three": ("1", "1")},
        "barely": ("2", "2"),  # nobody has enough runs of it
    }


def test_what_newer_folders_answer_is_replaced(tmp_path: Path) -> None:
    folder(tmp_path, "1", one="yes", two="none")
    folder(tmp_path, "2", one="no", two="none")
    folder(tmp_path, "3", one="none", two="none")  # of runs that no claim is about
    assert [it["folder"] for it in summaries.replaced(tmp_path, "toy")] == ["1"]
    assert summaries.replaced(tmp_path, "another") == []
