# SPDX-License-Identifier: MIT
"""The plot of all answers' times: from the lists that runs keep, level parts named, small."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from experiments.model import Figure
from experiments.plots import ccdf, drawing
from experiments.plots.cells import scene
from experiments.report.data import Results
from tests.experiments import synthetic

SVG = "{http://www.w3.org/2000/svg}"
LIMIT = 150_000
FIGURE = Figure(
    "times", "Times of all answers", "ccdf", x="answers_s", where={"preset": "lossy", "pipes": 8}
)
STEPS = [0.02 + n / 1e7 for n in range(960)] + [3.02 + n / 1e6 for n in range(38)]


def made(folder: Path, answers: list[float], unanswered: int) -> Results:
    results = synthetic.loaded(synthetic.make(folder / "A", reps=2))
    measures = {"answers_s": answers, "unanswered": unanswered}
    for it in results.configurations:
        for run in it.runs:
            run.measures.update(measures)
    return results


def test_level_parts_are_named_by_share_and_end(tmp_path: Path) -> None:
    results = made(tmp_path, STEPS, 2)
    path = drawing.draw_one(results, FIGURE, tmp_path)
    assert path is not None and path.stat().st_size < LIMIT
    told = ["".join(it.itertext()).strip() for it in ElementTree.parse(path).iter(f"{SVG}text")]
    assert "4.00% to 3020 ms" in told
    assert "time of an answer [ms]" in told
    assert "share that took" in " ".join(told)
    assert "logarithmic" in drawing.caption(results, FIGURE)


def test_all_runs_of_a_line_are_one_distribution(tmp_path: Path) -> None:
    results = made(tmp_path, [0.1, 0.2], 1)
    drawn = scene(results, replace(FIGURE, where={"preset": "lossy", "pipes": 8, "size": 50_000}))
    [line] = drawn.panels[0].lines
    assert ccdf.times(line, "answers_s") == ccdf.Times([0.1, 0.2] * 2, 2)


def test_a_curve_keeps_what_can_be_seen() -> None:
    curve = [(20.0 + n / 1e4, 1 - n / 2000) for n in range(1000)] + [(40.0, 0.3)]
    kept = ccdf.thinned(curve)
    assert len(kept) < 100
    assert kept[0] == curve[0] and kept[-1] == curve[-1]
