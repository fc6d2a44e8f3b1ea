# SPDX-License-Identifier: MIT
"""Of several folders of an experiment, which one speaks for it, and which one answers a claim."""

import json
from pathlib import Path
from typing import Any

from experiments import summaries


def folder(root: Path, name: str, **verdicts: str) -> None:
    claims: list[dict[str, Any]] = [
        {"says": says, "verdict": verdict, "median": name} for says, verdict in verdicts.items()
    ]
    at = root / "curated" / "toy" / name
    at.mkdir(parents=True)
    (at / "summary.json").write_text(json.dumps({"folder": name, "runs": 3, "comparison": claims}))


def test_the_fullest_speaks_and_the_newest_answers(tmp_path: Path) -> None:
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
