# SPDX-License-Identifier: MIT
"""results/README.md is what results/curated says: each published figure, with both verdicts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from experiments import catalogue, curated, paper, published
from experiments.model import OWN, Claim
from tests.experiments import synthetic

OF = {"pipes": 8, "size": 300_000}
OVER = {"pipes": 1, "size": 300_000}
BEFORE = "Measured before, not in these runs: A shorter queue."
FLOOR = "The floor is at 0.60, so the published value cannot be reached."


class Made(synthetic.Plain):
    """A row of each kind."""

    name = "download"
    claims = (
        Claim("download", "Fig. 9", "weaker", of=OF, over=OVER, paper=0.47),
        Claim("download", "Fig. 9", "as published", of=OF, over=OVER, paper=0.8, note="never said"),
        Claim(
            "download",
            "Table 1",
            "stronger",
            of=OF,
            over=OVER,
            paper=0.9,
            paper_sides=(0.45, 0.5),
            note="A shorter queue",
        ),
        Claim("download", "Fig. 9", "not run | at all", of=OF, over=OVER, paper=0.5),
        Claim("download", "§6.1", "without a value", of=OF, over=OVER),
        Claim("download", OWN, "a bound of ours", of=OF, over=OVER),
    )


def told(claim: Claim, **more: Any) -> dict[str, Any]:
    plain = {"metric": "completion_s", "unit": "", "median": 0.8, "low": 0.78, "high": 0.82}
    said = {"row": claim.row, "where": claim.where, "says": claim.says, "own": claim.is_own}
    basis = {
        "sessions": 3,
        "seeds": 30,
        "repetitions": 10,
        "n": 10,
        "counted": "pairs",
        "repeats": False,
        "holm": True,
    }
    asked = {"asked": "0.40 to 0.50" if claim.paper else None}
    return {**plain, **said, **basis, **asked, "verdict": "yes", "size": None, "why": [], **more}


def summary(folder: str, runs: int, comparison: list[dict[str, Any]]) -> dict[str, Any]:
    def configuration(pipes: int, seconds: float) -> dict[str, Any]:
        completion = {"unit": "s", "median": seconds}
        metrics = {"completion_s": completion, "over_floor": {"unit": "", "median": seconds / 0.3}}
        return {"params": {"pipes": pipes, "size": 300_000}, "metrics": metrics}

    return {
        **{"experiment": "download", "folder": folder, "runs": runs, "failed": 1},
        **{"links": ["linkem"], "commit": "0123456789abcdef", "late": None},
        "own_tally": {**dict.fromkeys(curated.MARKS, 0), "yes": 1},
        "comparison": comparison,
        "configurations": [configuration(1, 0.5), configuration(8, 0.4)],
    }


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = Made()
    monkeypatch.setattr(catalogue, "experiments", lambda: (made,))
    weaker, same, stronger, _, plain, own = made.claims  # the fourth was not run
    why = ["The interval includes the border."]
    comparison = [
        told(weaker, size="weaker", holm=False, causes=[FLOOR]),
        told(same, size="yes", counted="settings", n=30),
        told(stronger, size="stronger", sessions=1, repeats=True, causes=[BEFORE]),
        told(plain, verdict="unclear", why=why, median=None, high=None),
        told(own),
    ]
    few = [told(weaker, verdict="few", size="few")]
    for name, runs, its in (("20260101-a", 90, few), ("20260102-b", 20, comparison)):
        folder = tmp_path / "curated" / "download" / name
        folder.mkdir(parents=True)
        (folder / "summary.json").write_text(json.dumps(summary(name, runs, its)))
    return tmp_path


def row(page: str, says: str) -> list[str]:
    (found,) = re.findall(rf"^\| {re.escape(says)} .*$", page, re.MULTILINE)
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_each_published_figure_has_both_verdicts(results: Path) -> None:
    page = curated.page(results)
    asked = "(0.40 to 0.50)"
    assert row(page, "weaker (Fig. 9)")[1:] == [
        *("ratio of completion time", "0.47", "0.80 (0.78 to 0.82)", "3 / 30 / 10"),
        *("✓ yes, by itself", f"✗ weaker {asked}"),
    ]
    assert row(page, "as published")[4:] == [
        *("3 / 30 / 10, of 30 settings", "✓ yes", f"✓ same size {asked}"),
    ]
    assert row(page, "stronger (Table 1)")[2:] == [
        *("0.90", "0.80 (no interval; repeats of one session, 0.78 to 0.82)", "1 / 30 / 10"),
        *("✓ yes", f"✗ stronger {asked}"),
    ]
    assert row(page, "without a value (§6.1)")[2:] == [
        *("below 1.00", "∞ (0.78 to ∞)", "3 / 30 / 10", "~ not decided", ""),
    ]
    assert (
        "4 of 5 published figures were measured. The direction is the published one in 3 of them "
        "(in 1 of these by itself only), another in 0, and not decided in the others. 3 have a "
        "published value: the size is the same in 1, another in 2, and not decided in the others."
    ) in page
    header = next(line for line in page.splitlines() if line.startswith("| what | measured |"))
    for column in header.strip("| ").split(" | "):
        assert f"\n| {column} | " in curated.HEAD, "each column is explained"


def test_where_it_is_not_the_same_it_says_why(results: Path) -> None:
    """From the runs, from what was tested, and by what both sides are."""
    page = curated.page(results)
    assert f"- weaker: {FLOOR} Ours: 0.5 → 0.4 s.\n" in page
    assert f"- stronger: {BEFORE} Ours: 0.5 → 0.4 s; published: 0.5 → 0.45 s.\n" in page
    assert "- without a value: The interval includes the border. Ours: 0.5 → 0.4 s.\n" in page
    assert "never said" not in page, "nobody asks why it is as published"


def test_a_size_that_is_not_decided_has_that_as_its_reason(results: Path) -> None:
    path = results / "curated" / "download" / "20260102-b" / "summary.json"
    made = json.loads(path.read_text())
    made["comparison"][1] |= {"size": "unclear", "causes": ["Now it is said."]}
    path.write_text(json.dumps(made))
    page = curated.page(results)
    assert row(page, "as published")[6] == "~ not decided (0.40 to 0.50)"
    assert "- as published: Now it is said. Of the size: " in page
    assert "the size is the same in 0, another in 2, and not decided in the others." in page


def test_what_nobody_tested_is_said(results: Path) -> None:
    """What the runs say besides is no cause."""
    told = "a cause was tested of {}: it stands below the table"
    assert told.format(2) in curated.page(results)
    path = results / "curated" / "download" / "20260102-b" / "summary.json"
    made = json.loads(path.read_text())
    made["comparison"][0] |= {"why": ["Also measured."], "causes": []}
    path.write_text(json.dumps(made))
    page = curated.page(results)
    assert f"- weaker: Also measured. {published.NOT_YET} Ours: 0.5 → 0.4 s." in page
    assert told.format(1) in page


def test_what_was_not_run_is_named_and_own_bounds_are_apart(results: Path) -> None:
    page = curated.page(results)
    assert "Not run: not run \\| at all." in page
    assert "a bound of ours" not in page, "it holds"
    assert (
        "| [download](curated/download/20260102-b/report.html) (older engine) | 1 | 0 | 0 | 0 | 0 "
        "| 0 |"
    ) in page


def test_rows_without_any_runs_are_one_table(results: Path) -> None:
    """A section for each of them, which said that there is nothing, was half of the page."""
    page = curated.page(results)
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert headings == [
        *("How to read a table", "What came out", paper.title("download")),
        *(curated.NOT_MEASURED, curated.OWN_BOUNDS),
    ]
    left = page[page.index(f"## {curated.NOT_MEASURED}") :]
    for it in paper.ROWS:
        assert (f"| {it.what} |" in left) == (it.row != "download"), it.row
    nothing = curated.page(results / "nothing")
    many = sum(not it.is_own for it in Made.claims)
    what = "one file over one connection, by number of pipes"
    assert f"| {what} | Fig. 9; Table 1; §6.1 | {many} | `download` |" in nothing


def test_a_bound_that_does_not_hold_is_named(results: Path) -> None:
    """With what was asked and what came out: a tally alone leaves a reader to search reports."""
    path = results / "curated" / "download" / "20260102-b" / "summary.json"
    made = json.loads(path.read_text())
    more = {"expect": "less", "than": 0.5, "kind": "median", "unit": "s", "verdict": "no"}
    made["comparison"][-1] |= more | {"statistic": "median"}
    path.write_text(json.dumps(made))
    told = (
        "- download (older engine): a bound of ours: below 0.500 s is asked, {} (0.780 to 0.820) "
        "was measured.\n"
    )
    assert told.format("0.800 s") in curated.page(results)
    pooled = {"statistic": "pooled", "pooled": 0.79, "p95": 0.9}
    made["comparison"][-1] = {k: v for k, v in made["comparison"][-1].items() if k != "median"}
    made["comparison"][-1] |= pooled
    path.write_text(json.dumps(made))
    assert told.format("0.790 s") in curated.page(results), "not what else is told of it"


def test_runs_of_an_older_engine_are_marked(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = curated.page(results)
    assert "commit 0123456789 (older engine)" in page and "do not say what the present" in page
    monkeypatch.setattr(curated, "SINCE", "20260101")
    assert "older engine" not in curated.page(results)


def test_a_section_shows_a_plot(results: Path) -> None:
    there = results / "curated" / "download" / "20260102-b" / "plots"
    assert "![" not in curated.page(results)
    there.mkdir()
    (there / "pipes.svg").write_text("<svg/>")
    shown = "![Completion time against pipes](curated/download/20260102-b/plots/pipes.svg)"
    assert f"\n\n{shown}\n\n| what |" in curated.page(results)


def test_a_section_says_which_folder_it_is_of(results: Path) -> None:
    """And what of that folder."""
    page = curated.page(results)
    assert (
        "- [download](curated/download/20260102-b/report.html): 20 runs, 1 failed, 2 January 2026, "
        "commit 0123456789 (older engine), last mile by linkem.\n" in page
    )
    path = results / "curated" / "download" / "20260102-b" / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"late": {"p99_us": 1500}}))
    late = "last mile by linkem, 99 % of its packets at most 1.5 ms late.\n"
    assert late in curated.page(results)


def test_the_newest_that_answers_speaks_for_a_claim(results: Path) -> None:
    """Newer runs answer one published figure and miss the bound; the others stay with the folder
    that answers them. What is replaced as a whole can still be found."""
    weaker, *_, own = Made.claims
    missed = {"verdict": "no", "statistic": "median", "kind": "median", "expect": "less"}
    newer = [told(weaker, median=0.6), told(own, **missed, than=0.5, median=0.7)]
    folder = results / "curated" / "download" / "20270101T000000Z-c"
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps(summary(folder.name, 5, newer)))
    page = curated.page(results)
    assert row(page, "weaker (Fig. 9)")[3] == "0.60 (0.78 to 0.82)"
    assert row(page, "as published (Fig. 9)")[3] == "0.80 (0.78 to 0.82)"
    for name, of in (("20270101T000000Z-c", "5 runs"), ("20260102-b", "20 runs")):
        assert f"- [download](curated/download/{name}/report.html): {of}" in page
    assert "- download: a bound of ours: below 0.500 is asked, 0.700 " in page
    linked = "| [download](curated/download/20270101T000000Z-c/report.html) | 0 | 1 |"
    assert linked in page, "the bound is of the newer one alone"
    (replaced,) = re.findall("^All that these reports answer .*$", page, re.MULTILINE)
    assert "curated/download/20260101-a/report.html) (older engine)." in replaced
    assert "20260102-b" not in replaced and "20270101" not in replaced


def test_the_contents_lead_to_their_sections(results: Path) -> None:
    page = curated.page(results)
    slugs = {curated._slug(it) for it in re.findall(r"^## (.*)$", page, re.MULTILINE)}
    there = re.findall(r"\]\(#([^)]*)\)", page)
    assert len(there) == 3 and set(there) < slugs


# --- the page that is committed ---


def test_the_page_is_what_the_results_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert curated.main([]) == 0, capsys.readouterr().err


def test_another_digit_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = curated.page()
    monkeypatch.setattr(curated, "page", lambda: right)
    monkeypatch.setattr(curated, "RESULTS", tmp_path)
    assert curated.main([]) == 1, "there is none"
    assert curated.main(["--write"]) == 0 and curated.main([]) == 0
    there = tmp_path / "README.md"
    at = right.index("0.72 (")
    there.write_text(right[:at] + "0.71" + right[at + 4 :])
    capsys.readouterr()
    assert curated.main([]) == 1
    line = right[:at].count("\n") + 1
    assert f"from line {line} on" in capsys.readouterr().err
    there.write_text(right + "more\n")
    assert curated.main([]) == 1 and "from its end on" in capsys.readouterr().err


def test_every_curated_claim_is_on_it() -> None:
    """Each published row that some folder answers, once; and each folder that says something."""
    page = curated.page()
    for experiment in catalogue.experiments():
        for it in published.lines(curated.RESULTS, experiment):
            if not it.claim.is_own and it.verdict != "none":
                assert f"| {it.claim.says} ({it.claim.where}) |" in page, it.claim.says
    for path in sorted((curated.RESULTS / "curated").glob("*/*/summary.json")):
        its = json.loads(path.read_text())["comparison"]
        if any(it["verdict"] != "none" for it in its):
            name = path.parent.relative_to(curated.RESULTS)
            assert f"({name}/report.html)" in page, f"{name} is linked nowhere"
