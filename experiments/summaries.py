# SPDX-License-Identifier: MIT
"""The summaries of results/curated, and which folder of an experiment speaks for it.

results/README.md and the figures that texts quote are from the same one.
"""

import json
from pathlib import Path
from typing import Any

from base.sources import ROOT

RESULTS = ROOT / "results"
UNANSWERED = ("few", "none")  # verdicts of claims that the runs do not answer
Summary = dict[str, Any]


def _all(root: Path, experiment: str) -> list[Summary]:
    """Of the folders in `root`/curated; the newest is the last."""
    paths = sorted((root / "curated" / experiment).glob("*/summary.json"))
    return [json.loads(path.read_text()) for path in paths]


def fullest(root: Path, experiment: str) -> Summary | None:
    """Of the folders in `root`/curated the one that answers most claims, of these the one with
    most runs, of these the newest; None where there is none."""
    found = _all(root, experiment)
    return max(found, key=lambda it: (_answered(it), it["runs"], it["folder"]), default=None)


def newest_answer(root: Path, experiment: str, says: str) -> dict[str, Any] | None:
    """To the claim that says so: of the newest folder that has one."""
    for summary in reversed(_all(root, experiment)):
        for claim in summary["comparison"]:
            if claim["says"] == says and _is_answered(claim):
                return dict(claim)
    return None


def _is_answered(claim: dict[str, Any]) -> bool:
    return claim["verdict"] not in UNANSWERED


def _answered(summary: Summary) -> int:
    return sum(map(_is_answered, summary["comparison"]))
