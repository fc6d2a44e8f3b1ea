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


def fullest(root: Path, experiment: str) -> Summary | None:
    """Of the folders in `root`/curated the one that answers most claims, of these the one with
    most runs, of these the newest; None where there is none."""
    paths = sorted((root / "curated" / experiment).glob("*/summary.json"))
    found: list[Summary] = [json.loads(path.read_text()) for path in paths]
    return max(found, key=lambda it: (_answered(it), it["runs"], it["folder"]), default=None)


def _answered(summary: Summary) -> int:
    return sum(it["verdict"] not in UNANSWERED for it in summary["comparison"])
