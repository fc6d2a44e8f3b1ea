# SPDX-License-Identifier: MIT
"""summary.json: what the report's tables say, for programs."""

import json
from pathlib import Path
from typing import Any

from experiments.report import facts
from experiments.report.conclusions import contrasts, sentences
from experiments.report.data import Results
from experiments.report.rows import Row, apart, estimates, numbers, sizes, tally

FORMAT = 1


def of(results: Results, rows: list[Row]) -> dict[str, Any]:
    experiment = results.experiment
    published, own = apart(rows)
    return {
        "format": FORMAT,
        "experiment": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "folder": results.folder.name,
        "commit": results.meta.get("commit"),
        "command": results.meta.get("command"),
        "configurations_run": len(results.configurations),
        "runs": len(results.runs),
        "failed": len(results.failed),
        "void": results.void,
        "void_attempts": len(results.voided),
        "late": facts.lateness(results),
        "links": sorted({run.link for run in results.runs if run.link}),
        "tally": tally(published),
        "sizes": sizes(published),
        "own_tally": tally(own),
        "comparison": [row.as_dict() for row in rows],
        "contrasts": [
            {
                "of": it.of,
                "over": it.over,
                "setting": it.setting,
                "metric": results.main.name,
                "compared": it.compared,
                "says": it.says,
                **numbers(it.got),
            }
            for it in contrasts(results, results.main)
        ],
        "conclusions": sentences(results),
        "configurations": configurations(results),
    }


def configurations(results: Results) -> list[dict[str, Any]]:
    """What was measured of each."""
    return [
        {
            "params": {name: it.params.get(name) for name in results.varying},
            "runs": len(it.runs),
            "failed": it.failed,
            "metrics": {
                metric.name: {"unit": metric.unit, **numbers(got)}
                for metric, got in estimates(results, it)
                if got.n
            },
        }
        for it in results.configurations
    ]


def write(results: Results, rows: list[Row]) -> Path:
    path = results.folder / "summary.json"
    text = json.dumps(of(results, rows), indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n")
    return path
