# SPDX-License-Identifier: MIT
"""The summaries of results/curated, and which folder of an experiment answers which claim.

A claim is answered by the newest folder that has runs enough of it. So results/README.md and the
texts that quote a claim never say what newer runs have replaced. What texts quote of configurations
is of one folder, the fullest, since these numbers are compared with each other.
"""

import json
from pathlib import Path
from typing import Any

from base.sources import ROOT

RESULTS = ROOT / "results"
UNANSWERED = ("few", "none")  # verdicts of claims that the runs do not answer
Summary = dict[str, Any]
Said = dict[str, Any]  # of a claim, in a summary's comparison
Key = tuple[str, str, str]  # of a claim: where it was published, what it says, its metric


def _all(root: Path, experiment: str) -> list[Summary]:
    """Of the folders in `root`/curated; the newest is the last."""
    paths = sorted((root / "curated" / experiment).glob("*/summary.json"))
    return [json.loads(path.read_text()) for path in paths]


def fullest(root: Path, experiment: str) -> Summary | None:
    """Of the folders in `root`/curated the one that answers most claims, of these the one with
    most runs, of these the newest; None where there is none."""
    found = _all(root, experiment)
    return max(found, key=lambda it: (_answered(it), it["runs"], it["folder"]), default=None)


def answers(root: Path, experiment: str) -> dict[Key, tuple[Summary, Said]]:
    """What is said of each claim that was run, and the folder that says so: the newest that answers
    it; of one that none answers the newest that has too few runs of it."""
    found: dict[Key, tuple[Summary, Said]] = {}
    for summary in _all(root, experiment):
        for claim in summary["comparison"]:
            key = (claim["where"], claim["says"], claim["metric"])
            answered = key in found and _is_answered(found[key][1])
            if _is_answered(claim) or (_was_run(claim) and not answered):
                found[key] = summary, claim
    return found


def replaced(root: Path, experiment: str) -> list[Summary]:
    """Of the folders in `root`/curated those that say something of claims, but nothing that newer
    ones do not answer."""
    speaking = {summary["folder"] for summary, _ in answers(root, experiment).values()}
    return [
        it
        for it in _all(root, experiment)
        if it["folder"] not in speaking and any(map(_was_run, it["comparison"]))
    ]


def newest_answer(root: Path, experiment: str, says: str) -> Said | None:
    """To the claim that says so: of the newest folder that has one."""
    for summary in reversed(_all(root, experiment)):
        for claim in summary["comparison"]:
            if claim["says"] == says and _is_answered(claim):
                return dict(claim)
    return None


def _is_answered(claim: Said) -> bool:
    return claim["verdict"] not in UNANSWERED


def _was_run(claim: Said) -> bool:
    return bool(claim["verdict"] != "none")


def _answered(summary: Summary) -> int:
    return sum(map(_is_answered, summary["comparison"]))
