# SPDX-License-Identifier: MIT
"""results/README.md, the page that a reader opens first, from the summaries of results/curated.

    build/venv/bin/python -m experiments.curated [--add DIR...] [--reports] [--write]

Each figure that was published: its value, ours, whether the direction and the size are the same,
and, where not, what is known of why. It is written from what the reports' summary.json say, of each
experiment the folder that answers most; claims come from the catalogue, so that one without runs
is named, too. It tells whether the page is another than that, and ends with 1.
"""

import argparse
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from experiments import catalogue, kept, paper
from experiments.model import Claim, Experiment
from experiments.report import words
from experiments.report.rows import MARKS, SAYS, SIZES
from experiments.summaries import RESULTS, Summary, fullest
from experiments.verdicts import ANOTHER

PAGE = "README.md"
OVER_FLOOR = "over_floor"  # a metric: times over the least that is possible
COUNTED = ("sessions", "seeds", "repetitions")  # that a row is from
NOT_YET = "No cause was tested yet."
HEAD = """\
# Measured again

What the paper on TM³ (CoNEXT 2015) measured, with some of what was published after it, and what
this laboratory measured of it. Each line of a table is one published figure. *Same direction?* says
whether more or less came out where it was published so; *same size?* whether ours is as large:
whether the whole interval lies within a margin around it, which stands in brackets. Compare
directions, orders and ratios: the published absolute figures come from other networks. The words
and the marks are explained in [reading.md](reading.md), how a run is made in
[experiments/README.md](../experiments/README.md).

A direction that holds *alone* may be chance among all claims of its report (Holm, 5 % for the
report). Mean and 95th percentile stand beside each median in the report that a section leads to.
*One session: repeats the same timers* is said in place of an interval where nothing was lost by
chance and all runs are of one session: what follows is how far they differ from each other, and
says nothing of another day. Of pages, and of other settings of which there are many, the interval
is for other pages.
"""
TAIL = """\
This page is written by `build/venv/bin/python -m experiments.curated --write` from the
`summary.json`s in [curated/](curated/); the tests fail where it differs. `tm3lab publish DIR` makes
a site of the same results, with plots and all reports.
"""


# Figures without runs that a row names one by one.
NAMED_AT_MOST = 8


@dataclass(frozen=True)
class Line:
    """A published figure and what our runs say of it."""

    claim: Claim
    summary: Summary | None
    told: dict[str, Any] | None  # of the summary's comparison; None: these runs do not have it

    @property
    def verdict(self) -> str:
        return self.told["verdict"] if self.told else "none"

    @property
    def size(self) -> str | None:
        if self.claim.paper is None:
            return None
        return self.told["size"] if self.told else "none"

    @property
    def misses(self) -> bool:
        """Where a reader asks why."""
        return self.verdict not in ("yes", "none") or self.size not in (None, "yes", "none")

    @property
    def is_ratio(self) -> bool:
        return self.claim.over is not None and self.claim.compared == "ratio"

    def number(self, value: float | None) -> str:
        """None: over half of the runs failed."""
        value = math.inf if value is None else value
        return words.ratio(value) if self.is_ratio else words.number(value)

    @property
    def unit(self) -> str:
        unit = self.told["unit"] if self.told else self.claim.unit
        return f" {unit}" if unit else ""

    @property
    def published(self) -> str:
        if self.claim.paper is not None:
            return self.number(self.claim.paper) + self.unit
        than = self.number(self.claim.than) + self.unit
        if self.claim.expect == "same":
            return f"{than} ± {self.claim.within * 100:g} %"
        return f"{'below' if self.claim.expect == 'less' else 'above'} {than}"

    @property
    def ours(self) -> str:
        if self.told is None or self.verdict == "none":
            return "not run"
        value = self.told.get(self.claim.statistic)
        low, high = self.number(self.told["low"]), self.number(self.told["high"])
        inside = f"{low} to {high}"
        if self.verdict == "few":
            inside = f"range {inside}"
        if self.told["repeats"]:
            inside = words.repeated(self.told["sessions"], low, high)
        return f"{self.number(value)}{self.unit} ({inside})"

    @property
    def runs(self) -> str:
        assert self.told is not None
        told = " / ".join(str(self.told[name]) for name in COUNTED)
        settings = self.told["counted"] == "settings"
        return f"{told}, of {self.told['n']} settings" if settings else told

    @property
    def direction(self) -> str:
        alone = (
            ", alone" if self.told and self.told["holm"] is False and self.verdict == "yes" else ""
        )
        return f"{MARKS[self.verdict]} {SAYS[self.verdict]}{alone}"  # type: ignore[index]

    @property
    def same_size(self) -> str:
        if self.size is None:
            return ""
        asked = f" ({self.told['asked']})" if self.told else ""
        return f"{SIZES[self.size]}{asked}"  # type: ignore[index]


def lines(root: Path, experiment: Experiment) -> list[Line]:
    """Of all its claims that were published."""
    summary = fullest(root, experiment.name)
    told = {
        (it["where"], it["says"], it["metric"]): it
        for it in (summary["comparison"] if summary else ())
    }
    return [
        Line(claim, summary, told.get((claim.where, claim.says, claim.metric)))
        for claim in experiment.claims
        if not claim.is_own
    ]


def by_row(root: Path) -> dict[str, list[Line]]:
    """In the paper's order; what is no row of it comes after."""
    found: dict[str, list[Line]] = {it.row: [] for it in paper.ROWS}
    for experiment in catalogue.experiments():
        for it in lines(root, experiment):
            found.setdefault(it.claim.row, []).append(it)
    return found


# --- why not ---


def why(line: Line) -> str:
    """What is known: from the runs, and from what was tested."""
    assert line.told is not None
    told = [*line.told["why"]]
    note = line.claim.note
    if note and not any(note in it for it in told):
        told.append(f"Measured before, not in these runs: {note}.".replace("..", "."))
    if line.size == "unclear":
        told.append(
            "Of the size: the interval lies within the margin in part, which decides nothing."
        )
    if line.verdict == "yes":  # else the summary has it
        told += _floor(line)
    return " ".join([*(told or [NOT_YET]), *_sides(line)])


def _configurations(line: Line, side: Any) -> list[dict[str, Any]]:
    """Of the summary, by the parameters that vary there."""
    assert line.summary is not None
    return [
        it
        for it in line.summary["configurations"]
        if all(value == side[name] for name, value in it["params"].items() if name in side)
    ]


def _medians(line: Line, side: Any, metric: str) -> list[float]:
    found = [it["metrics"].get(metric) for it in _configurations(line, side)]
    return [it["median"] for it in found if it and it["median"] is not None]


def _floor(line: Line) -> Iterator[str]:
    """What of a gain is possible at all, where only the size is another."""
    claim = line.claim
    if not line.is_ratio or claim.expect != "less" or claim.metric != "completion_s":
        return
    over = _medians(line, claim.over, OVER_FLOOR)
    if not over or line.size != "weaker" or claim.paper is None:
        return
    least = 1 / median(over)
    yield (
        f"The floor, RTT + size/rate, is at {words.ratio(least)} of what "
        f"{words.carried(claim.over or {})} needs"
        + (", so the published value cannot be." if least > claim.paper else ".")
    )


def _sides(line: Line) -> Iterator[str]:
    """Of a ratio what was compared, where it is one configuration each."""
    claim = line.claim
    if not line.is_ratio:
        return
    both = [_medians(line, side, claim.metric) for side in (claim.over, claim.of)]
    if any(len(it) != 1 for it in both):
        return
    (over,), (of,) = both
    unit = _unit_of(line)
    text = f"Ours: {words.brief(over)} → {words.brief(of)}{unit}"
    first, second = claim.paper_sides
    if first is not None and second is not None:
        text += f"; published: {words.brief(second)} → {words.brief(first)}{unit}"
    yield f"{text}."


def _unit_of(line: Line) -> str:
    for it in _configurations(line, line.claim.of):
        unit = it["metrics"].get(line.claim.metric, {}).get("unit")
        return f" {unit}" if unit else ""
    return ""


# --- the page ---


def marked(found: Sequence[Line]) -> str:
    """How many directions hold, how many do not, ..."""
    counts = {name: sum(it.verdict == name for it in found) for name in MARKS}
    told = [f"{MARKS[name]} {n}" for name, n in counts.items() if n]  # type: ignore[index]
    return " ".join(told) or "-"


def marked_sizes(found: Sequence[Line]) -> str:
    sizes = [it.size for it in found if it.size is not None]
    counts = {
        "✓": sizes.count("yes"),
        "✗": sum(it in ANOTHER for it in sizes),
        "~": sizes.count("unclear"),
        "?": sizes.count("few"),
        "-": sizes.count("none"),
    }
    return " ".join(f"{mark} {n}" for mark, n in counts.items() if n) or ""


def title(row: str) -> str:
    """Of what is no row of the paper, the experiment's."""
    told = {it.name: it.title for it in catalogue.experiments()}
    named = paper.title(row)
    return told.get(row, row) if named == row else named


def _slug(heading: str) -> str:
    """As GitHub makes anchors."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\N{NO-BREAK SPACE}", " ")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    ruled = ["|" + "---|" * len(head)]
    return [
        f"| {' | '.join(head)} |",
        *ruled,
        *(f"| {' | '.join(map(_cell, it))} |" for it in rows),
    ]


def _whence(found: Sequence[Line]) -> Iterator[str]:
    """The folders that a section is from."""
    seen: dict[str, Summary] = {}
    for it in found:
        if it.summary and it.told and it.verdict != "none":
            seen.setdefault(it.summary["folder"], it.summary)
    for summary in seen.values():
        link = f"curated/{summary['experiment']}/{summary['folder']}/report.html"
        late = summary.get("late")
        kept = (
            f"links at most {late['p99_us'] / 1e3:g} ms late in 99 % of the packets"
            if late
            else "how late the links were was not recorded"
        )
        failed = f"{summary['failed']} failed" if summary["failed"] else "none failed"
        yield (
            f"[{summary['experiment']}]({link}): {summary['runs']} runs, {failed}, by "
            f"{words.listed(summary['links']) or 'a link that is not recorded'}, commit "
            f"{str(summary['commit'])[:10]}, {kept}."
        )


def _section(row: str, found: Sequence[Line]) -> Iterator[str]:
    yield f"## {title(row)}"
    yield ""
    there = [it for it in found if it.verdict != "none"]
    if not there:
        yield "No runs of it are curated."
        yield ""
    else:
        yield "\n".join(_whence(found))
        yield ""
        yield from _table(
            (
                *("what", "published", "ours (95 % interval)"),
                *("sessions / seeds / repetitions", "same direction?", "same size?"),
            ),
            [
                (
                    f"{it.claim.says} ({it.claim.where})",
                    it.published,
                    it.ours,
                    it.runs,
                    it.direction,
                    it.same_size,
                )
                for it in there
            ],
        )
        yield ""
    yield from _why_not(there)
    missing = [it.claim.says for it in found if it.verdict == "none"]
    if len(missing) > NAMED_AT_MOST and not there:
        yield f"Not run: {len(missing)} figures, which {_lists(row)} names."
        yield ""
    elif missing:
        yield f"Not run: {'; '.join(map(_cell, missing))}."
        yield ""


def _lists(row: str) -> str:
    """The commands that tell a row's figures."""
    return words.listed(
        [
            f"`tm3lab list {it.name}`"
            for it in catalogue.experiments()
            if any(claim.row == row for claim in it.claims)
        ]
    )


def _why_not(there: Sequence[Line]) -> Iterator[str]:
    """What the same is known of is said once."""
    causes: dict[str, list[str]] = {}
    for it in there:
        if it.misses:
            causes.setdefault(why(it), []).append(it.claim.says)
    if causes:
        yield "Why not:"
        yield ""
        yield from (f"- {'; '.join(says)}: {_cell(text)}" for text, says in causes.items())
        yield ""


def _own(root: Path) -> Iterator[str]:
    """Tallies: the reports have the bounds themselves."""
    rows = []
    for experiment in catalogue.experiments():
        summary = fullest(root, experiment.name)
        tally = summary["own_tally"] if summary else {}
        if summary and any(tally.values()):
            link = f"curated/{experiment.name}/{summary['folder']}/report.html"
            rows.append((f"[{experiment.name}]({link})", *(str(tally[name]) for name in MARKS)))
    yield "## The laboratory's own bounds"
    yield ""
    yield "What nobody published, and the laboratory asks of itself. The reports have each bound."
    yield ""
    yield from _table(("experiment", *(f"{MARKS[it]} {SAYS[it]}" for it in MARKS)), rows)
    yield ""


def page(root: Path = RESULTS) -> str:
    """Of the results in `root`/curated."""
    rows = by_row(root)
    every = [it for found in rows.values() for it in found]
    yes = [it for it in every if it.verdict == "yes"]
    alone = sum(it.direction.endswith("alone") for it in yes)
    sized = [it for it in every if it.size not in (None, "none")]
    same = sum(it.size == "yes" for it in sized)
    undecided = sum(it.size == "unclear" for it in sized)
    out = [HEAD]
    out.append(
        f"Of {len(every)} published figures {sum(it.verdict != 'none' for it in every)} were "
        f"measured. The direction is the same in {len(yes)}, in {alone} of them only alone; of "
        f"{len(sized)} that have a value, the size is the same in {same} and not decided in "
        f"{undecided}.\n"
    )
    contents = [
        (f"[{title(row)}](#{_slug(title(row))})", marked(found), marked_sizes(found))
        for row, found in rows.items()
    ]
    out += _table(("published", "same direction?", "same size?"), contents)
    out.append("")
    for row, found in rows.items():
        out += _section(row, found)
    out += _own(root)
    out.append(TAIL)
    return "\n".join(out)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.curated")
    parser.add_argument("--write", action="store_true", help=f"write results/{PAGE}")
    parser.add_argument(
        "--add", type=Path, nargs="+", default=[], metavar="DIR", help="keep these results, too"
    )
    parser.add_argument(
        "--reports", action="store_true", help="write all curated reports and summaries anew"
    )
    given = parser.parse_args(argv)
    for folder in given.add:
        print(kept.add(folder, RESULTS))
    for folder in kept.folders(RESULTS) if given.reports else ():
        kept.unlink(folder)
        kept.write(folder)
    if given.write:
        (RESULTS / PAGE).write_text(page())
    wrong = [*_pointing(), *_differing()]
    for line in wrong:
        print(f"curated: {line}", file=sys.stderr)
    return int(bool(wrong))


def _pointing() -> Iterator[str]:
    for folder in kept.folders(RESULTS):
        if kept.lost(folder):
            yield (
                f"{folder} points to logs that are not kept: "
                "python -m experiments.curated --reports"
            )


def _differing() -> Iterator[str]:
    """Where the page is another than the summaries say."""
    there, made = RESULTS / PAGE, page()
    written = there.read_text() if there.is_file() else ""
    if written == made:
        return
    lines = zip(written.splitlines(), made.splitlines(), strict=False)
    differs = [number for number, (a, b) in enumerate(lines, 1) if a != b]
    where = f"line {differs[0]}" if differs else "its end"
    yield (
        f"results/{PAGE} is not what results/curated says, from {where} on: "
        "python -m experiments.curated --write"
    )


if __name__ == "__main__":
    sys.exit(main())
