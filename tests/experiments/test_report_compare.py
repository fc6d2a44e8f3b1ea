# SPDX-License-Identifier: MIT
"""Two results side by side, made up."""

import json
import re
from pathlib import Path

import pytest

from experiments import catalogue
from experiments.compare import Comparison, compare, of
from experiments.folder import FolderError
from tests.experiments import synthetic
from topologies.parameter import Params


def pairs_of(made: Comparison) -> dict[str, tuple[float, str]]:
    return {pair.label: (pair.change.median, pair.says) for pair in made.pairs[made.a.main]}


def change(folder: Path, seed: int = 0, kernel: str = "", **params: object) -> None:
    """Other seeds, another kernel, another value of a parameter in all runs."""
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    for line in lines:
        line["seed"] += seed
        line["params"].update(params)
    (folder / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if kernel:
        text = (folder / "meta.json").read_text()
        (folder / "meta.json").write_text(text.replace("6.18.0", kernel))


def test_paired_by_configuration_and_seed(tmp_path: Path) -> None:
    a = synthetic.make(tmp_path / "A")
    b = synthetic.make(tmp_path / "B", slower=0.8)
    change(b, kernel="6.19.1")
    made = of(synthetic.loaded(a), synthetic.loaded(b))
    pairs = pairs_of(made)
    assert len(pairs) == 20
    for label, (ratio, says) in pairs.items():
        assert ratio == pytest.approx(0.8), label
        assert says == "smaller"
    assert made.differs == [("kernel", "6.18.0", "6.19.1")]
    told = str(made)
    assert "kernel: 6.18.0 (A), 6.19.1 (B)" in told
    assert re.search(r"0\.80 +0\.80 to 0\.80 +10 +smaller", told)
    assert "20 smaller in B" in told


def test_without_common_seeds_it_is_not_paired(tmp_path: Path) -> None:
    a = synthetic.make(tmp_path / "A")
    b = synthetic.make(tmp_path / "B")
    change(b, seed=1000)
    made = of(synthetic.loaded(a), synthetic.loaded(b))
    assert not any(pair.paired for pair in made.pairs[made.a.main])
    assert "Without seeds in common" in str(made)
    assert {says for _, says in pairs_of(made).values()} == {"alike", "not decided"}


def test_a_parameter_that_differs_throughout_is_the_difference(tmp_path: Path) -> None:
    a = synthetic.make(tmp_path / "A")
    b = synthetic.make(tmp_path / "B", slower=1.5)
    change(b, cc="bbr")
    made = of(synthetic.loaded(a), synthetic.loaded(b))
    assert ("congestion control", "cubic", "bbr") in made.differs
    assert {says for _, says in pairs_of(made).values()} == {"larger"}


def test_what_only_one_has_is_named(tmp_path: Path) -> None:
    class Less(synthetic.Download):
        grids = ({"preset": ["wired", "lossy"], "size": [50_000, 300_000], "pipes": [1, 16]},)

    a = synthetic.make(tmp_path / "A", reps=5)
    b = synthetic.make(tmp_path / "B", Less(), 5)
    made = of(synthetic.loaded(a), synthetic.loaded(b, Less()))
    assert len(pairs_of(made)) == 4
    assert len(made.only_a) == 16 and len(made.only_b) == 4
    assert any(label.startswith("16 pipes") for label in made.only_b)
    assert "Only in B: 16 pipes" in str(made)


def test_failures_and_few_runs(tmp_path: Path) -> None:
    def fails(params: Params, rep: int) -> bool:
        return params["pipes"] == 8

    a = synthetic.make(tmp_path / "A", reps=3)
    b = synthetic.make(tmp_path / "B", reps=3, fails=fails)
    made = of(synthetic.loaded(a), synthetic.loaded(b))
    assert {says for _, says in pairs_of(made).values()} == {"too few runs"}
    assert any(ratio == float("inf") for ratio, _ in pairs_of(made).values())
    assert "∞" in str(made)


def test_page_and_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "of", lambda meta: synthetic.Plain())
    a = synthetic.make(tmp_path / "A<b>", synthetic.Plain(), 5)
    b = synthetic.make(tmp_path / "B", synthetic.Plain(), 5)
    made = compare(a, b)
    assert made.html == b / "compare-with-A<b>.html"
    page = made.html.read_text()
    assert "A&lt;b&gt;" in page and "A<b>" not in page
    assert "://" not in page and "<script" not in page
    assert "retransmits" in page, "other metrics as well"


def test_ratios_stand_beside_each_other(tmp_path: Path) -> None:
    """Twice as slow throughout, B gains what A gains; where only its many pipes are slow, not."""
    a = synthetic.make(tmp_path / "A")
    slow = of(synthetic.loaded(a), synthetic.loaded(synthetic.make(tmp_path / "B", slower=2.0)))
    assert {says for _, says in pairs_of(slow).values()} == {"larger"}
    label = "8 pipes / 1 pipe on lossy, 300\N{NO-BREAK SPACE}KB"
    found = {it.label: it for it in slow.ratios}
    assert "Fig. 9: 8 pipes instead of 1, 300 KB" in found, "what was published, too"
    assert found[label].change.median == pytest.approx(1.0)
    assert all(it.held for it in slow.ratios)
    assert slow.held == [
        "A's intervals hold 0 of B's 20 medians of configurations: 0\N{NO-BREAK SPACE}% "
        "(90\N{NO-BREAK SPACE}% is asked).",
        "A's intervals hold 11 of B's 11 medians of ratios: 100\N{NO-BREAK SPACE}% "
        "(90\N{NO-BREAK SPACE}% is asked).",
    ]
    c = synthetic.make(tmp_path / "C")
    lines = [json.loads(line) for line in (c / "runs.jsonl").read_text().splitlines()]
    for line in lines:
        if line["params"]["pipes"] == 8:
            line["measures"]["completion_s"] *= 2
    (c / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    one = of(synthetic.loaded(a), synthetic.loaded(c))
    (changed,) = [it for it in one.ratios if it.label == label]
    assert changed.change.median == pytest.approx(2.0)
    assert (changed.says, changed.held) == ("larger", False)
    assert re.search(r" 2\.00 .* no\n", str(one))


def test_repeats_of_the_same_timers_hold_nothing(tmp_path: Path) -> None:
    """As in the report: no loss, one session, no interval; with three of them there is one."""
    b = synthetic.loaded(synthetic.make(tmp_path / "B"))
    a = synthetic.make(tmp_path / "A")
    lossless(a, sessions=1)
    made = of(synthetic.loaded(a), b)
    assert made.held == [
        "For 20 medians of configurations A has no interval, but repeats of the same timers: "
        "20 alike in B.",
        "For 11 medians of ratios A has no interval, but repeats of the same timers: 6 alike in B.",
    ]
    assert not any(" yes" in line for line in str(made).splitlines())
    lossless(a, sessions=3)
    assert "A's intervals hold 20 of B's 20 medians" in of(synthetic.loaded(a), b).held[0]


def lossless(folder: Path, sessions: int) -> None:
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    for line in lines:
        line["links"] = {"0 down": {"lost_packets": 0}}
        line["session"] = line["rep"] % sessions
    (folder / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_what_is_within_the_smallest_effect_of_interest_is_alike(tmp_path: Path) -> None:
    a = synthetic.make(tmp_path / "A")
    b = synthetic.make(tmp_path / "B", slower=1.02)
    made = of(synthetic.loaded(a), synthetic.loaded(b))
    assert {says for _, says in pairs_of(made).values()} == {"alike"}
    assert "20 alike" in str(made)


def test_two_experiments_have_nothing_in_common(tmp_path: Path) -> None:
    a = synthetic.make(tmp_path / "A", reps=1)
    b = synthetic.make(tmp_path / "B", synthetic.Plain(), 1)
    with pytest.raises(FolderError, match="nothing in common"):
        of(synthetic.loaded(a), synthetic.loaded(b, synthetic.Plain()))
