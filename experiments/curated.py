# SPDX-License-Identifier: MIT
"""results/README.md, the page that a reader opens first, from the summaries of results/curated.

    build/venv/bin/python -m experiments.curated [--add DIR...] [--reports] [--write]

Each figure that was published: its value, ours, whether the direction and the size are the same,
and, where not, what is known of why. It is written from what the reports' summary.json say, of each
claim the newest folder that answers it; claims come from the catalogue, so that one without runs
is named, too. It tells whether the page is another than that, and ends with 1.
"""

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from experiments import catalogue, kept, paper
from experiments.model import Experiment
from experiments.published import Line, by_row, lines, why
from experiments.report import words
from experiments.report.rows import MARKS, SAYS
from experiments.summaries import RESULTS, Summary, replaced
from experiments.verdicts import ANOTHER

PAGE = "README.md"
HEAD = """\
# Measured again

TM³ carries all TCP connections of a host over a few long-lived ones, the *pipes*. This page sets
what was published of it (CoNEXT 2015), and of some later work on several paths, beside what this
laboratory measured by the same experiments over emulated last miles. Compare directions, orders
and ratios: the published absolute figures come from other networks. [reading.md](reading.md)
explains every word and mark, [experiments/README.md](../experiments/README.md) how a run is made,
[topologies/README.md](../topologies/README.md) the last miles that rows name: `wired`, `lossy`,
`lte` and others.

## How to read a table

Each line is one published figure.

| column | says |
|---|---|
| what | what is compared, and in brackets where it was published |
| measured | of what the numbers are. A *ratio* is the first side over the second, of runs that \
met the same losses: 0.42 of a completion time is 42 % of the time |
| published | the value; *below 1.00* where only the direction was published |
| ours | the median, and the 95 % interval of it. *No interval* where nothing was lost by chance \
and all runs are of one session: they repeat the same timers, and how far they differ says nothing \
of another day |
| runs | how many sessions / seeds / repetitions it is from. *Of n settings*: the interval is for \
other pages or settings of the kind |
| same direction? | whether the whole interval lies on the published side. *By itself*: among all \
rows of its report it may be chance (Holm, 5 % for the report) |
| same size? | whether the whole interval lies within a margin around the published value, which \
stands in brackets. *Weaker* is nearer to no effect, *stronger* further from it |

Mean and 95th percentile stand beside each median in the report that a section leads to.
"""
TAIL = """\
This page is written by `build/venv/bin/python -m experiments.curated --write` from the
`summary.json` of each folder in [curated/](curated/); the tests fail where it differs.
`build/tm3lab publish DIR` makes a site of the same results, with all plots and reports.
"""
# Folders from before say something of an engine that decided otherwise.
SINCE = "20261122T063559Z"
DECISIONS = (
    "[10](../docs/decisions/0010-one-law.md) and [12](../docs/decisions/0012-one-decision.md)"
)
OLDER = "older engine"
NOT_MEASURED = "Not measured yet"
NO_EXPERIMENT = (
    "Of what is published no experiment here has these, so they are not among the figures: pages "
    "of real sites (beside Fig. 11: -22 and -19 %), which need the Internet; QUIC in Table 5, "
    "which is of another study; pipes of SCTP without concurrent transfers, (i) and (ii) of §6.5; "
    "and the switch from pipes of TCP to those of SCTP under loss at the end of §6.5, which is "
    "tested (`tests/vm/test_sctp.py`), not measured."
)
OWN_BOUNDS = "The laboratory's own bounds"


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


def _whence(root: Path, found: Sequence[Line]) -> Iterator[str]:
    """The folders that a section is from, and a plot of the one that has most of its rows."""
    there = [it for it in found if it.summary]
    seen = {_path(it.summary): it for it in reversed(there) if it.summary}
    rows = Counter(_path(it.summary) for it in there if it.summary)
    for path in reversed(seen):
        summary = seen[path].summary
        assert summary
        yield f"- {_folder(summary)}"
    most = rows.most_common(1)[0][0]
    yield from _plot(root, seen[most].experiment, most)


def _path(summary: Summary) -> str:
    return f"curated/{summary['experiment']}/{summary['folder']}"


def _folder(summary: Summary) -> str:
    """What it is of, in one sentence."""
    late = summary.get("late")
    failed = f"{summary['failed']} failed" if summary["failed"] else "none failed"
    told = (
        f"{summary['runs']} runs, {failed}",
        _day(summary["folder"]),
        f"commit {str(summary['commit'])[:10]}{_if_older(summary)}",
        f"last mile by {words.listed(summary['links']) or 'what is not recorded'}",
        f"99 % of its packets at most {late['p99_us'] / 1e3:g} ms late" if late else "",
    )
    link = f"[{summary['experiment']}]({_path(summary)}/report.html)"
    return f"{link}: {', '.join(filter(None, told))}."


def _is_older(summary: Summary) -> bool:
    return bool(summary["folder"] < SINCE)


def _day(folder: str) -> str:
    """Of a folder's name, which begins with it; empty where somebody called it otherwise."""
    try:
        when = datetime.strptime(folder[:8], "%Y%m%d")
    except ValueError:
        return ""
    return f"{when.day} {when:%B %Y}"


def _plot(root: Path, experiment: Experiment, path: str) -> Iterator[str]:
    """The first of the experiment's that was drawn."""
    for figure in experiment.figures:
        name = f"{path}/plots/{figure.name}.svg"
        if (root / name).is_file():
            yield ""
            yield f"![{figure.title}]({name})"
            return


def _section(root: Path, row: str, found: Sequence[Line]) -> Iterator[str]:
    there = [it for it in found if it.verdict != "none"]
    yield f"## {title(row)}"
    yield ""
    yield "\n".join(_whence(root, found))
    yield ""
    yield from _table(
        ("what", "measured", "published", "ours", "runs", "same direction?", "same size?"),
        [
            (
                f"{it.claim.says} ({it.claim.where})",
                *(it.measured, it.published, it.ours, it.runs, it.direction, it.same_size),
            )
            for it in there
        ],
    )
    yield ""
    yield from _why_not(there)
    missing = [it.claim.says for it in found if it.verdict == "none"]
    if missing:
        yield f"Not run: {'; '.join(map(_cell, missing))}."
        yield ""


def _not_yet(rows: dict[str, list[Line]]) -> Iterator[str]:
    """Rows of which nothing was run: what they are, and how they are."""
    yield f"## {NOT_MEASURED}"
    yield ""
    yield (
        "Of these no runs are kept. `build/tm3lab list NAME` tells the figures of an experiment, "
        "`sudo build/tm3lab run NAME` measures them. What is published as a figure, table or "
        "section alone is of further publications, not of the paper on TM³."
    )
    yield ""
    yield from _table(
        ("what", "published as", "figures", "experiment"),
        [
            (
                paper.what(row) or title(row),
                "; ".join(dict.fromkeys(it.claim.where for it in found)),
                str(len(found)),
                words.listed(
                    [f"`{it}`" for it in dict.fromkeys(it.experiment.name for it in found)]
                ),
            )
            for row, found in rows.items()
        ],
    )
    yield ""
    yield NO_EXPERIMENT
    yield ""


def _why_not(there: Sequence[Line]) -> Iterator[str]:
    """What the same is known of is said once."""
    causes: dict[str, list[str]] = {}
    for it in there:
        if it.misses:
            causes.setdefault(why(it), []).append(it.claim.says)
    if causes:
        yield "What is known of why, where a verdict is not ✓:"
        yield ""
        yield from (f"- {'; '.join(says)}: {_cell(text)}" for text, says in causes.items())
        yield ""


def _own(root: Path) -> Iterator[str]:
    """Tallies, and each bound that does not hold: the reports have them all."""
    rows, broken = [], []
    for experiment in catalogue.experiments():
        bounds = [it for it in lines(root, experiment) if it.claim.is_own]
        links = _linked([it.summary for it in bounds if it.summary])
        if not links:
            continue
        counts = Counter(it.verdict for it in bounds)
        rows.append((links, *(str(counts[name]) for name in MARKS)))
        broken += [
            f"- {experiment.name}{_if_older(it.summary)}: {it.claim.says}: "
            + " ".join([_bound(it.told), *it.causes])
            for it in bounds
            if it.told and it.summary and it.verdict == "no"
        ]
    yield f"## {OWN_BOUNDS}"
    yield ""
    yield (
        "What nobody published, and the laboratory asks of itself, such as that a small object "
        "waits at most so long. The reports have each bound and what was measured of it. Where an "
        "experiment has several reports, each bound is counted by the newest that answers it."
    )
    yield ""
    yield from _table(("experiment", *(f"{MARKS[it]} {SAYS[it]}" for it in MARKS)), rows)
    yield ""
    if broken:
        yield "Those that do not hold:"
        yield ""
        yield from map(_cell, broken)
        yield ""


def _linked(its: Sequence[Summary]) -> str:
    """The reports of an experiment, the newest first, by its name; the others by their times."""
    by_folder = {it["folder"]: it for it in its}
    newest_first = [by_folder[name] for name in sorted(by_folder, reverse=True)]
    names = [it["experiment"] if it is newest_first[0] else _named(it) for it in newest_first]
    return ", ".join(
        f"[{name}]({_path(it)}/report.html){_if_older(it)}"
        for name, it in zip(names, newest_first, strict=True)
    )


def _named(summary: Summary) -> str:
    """By when it was measured: several may be of one day."""
    folder = str(summary["folder"])
    return f"{_day(folder)}, {folder[9:11]}:{folder[11:13]} UTC" if _day(folder) else folder


def _if_older(summary: Summary) -> str:
    return f" ({OLDER})" if _is_older(summary) else ""


def _replaced(root: Path) -> Iterator[str]:
    """Folders of which no figure of the page is."""
    links = [_linked(replaced(root, it.name)) for it in catalogue.experiments()]
    if any(links):
        yield (
            "All that these reports answer is answered by newer ones, so nothing on this page is "
            f"of them: {'; '.join(filter(None, links))}."
        )
        yield ""


def _bound(told: dict[str, Any]) -> str:
    """What was asked of it, and what came out."""
    is_ratio = told["kind"].endswith("ratio")
    write = words.ratio if is_ratio else words.number
    unit = f" {told['unit']}" if told["unit"] else ""
    asked = {"less": "below ", "more": "above "}.get(told["expect"], "about ")
    value = told.get(told["statistic"])
    value = math.inf if value is None else value
    low, high = (math.inf if told[it] is None else told[it] for it in ("low", "high"))
    inside = f"{write(low)} to {write(high)}"
    asked += f"{write(told['than'])}{unit}"
    return f"{asked} is asked, {write(value)}{unit} ({inside}) was measured."


def page(root: Path = RESULTS) -> str:
    """Of the results in `root`/curated."""
    rows = by_row(root)
    run = {row: found for row, found in rows.items() if any(it.verdict != "none" for it in found)}
    left = {row: found for row, found in rows.items() if row not in run}
    out = [HEAD, "## What came out\n", _summed(rows, run, left, _has_older(root))]
    contents = [
        (f"[{title(row)}](#{_slug(title(row))})", marked(found), marked_sizes(found))
        for row, found in run.items()
    ]
    out += _table(("published", "same direction?", "same size?"), contents)
    out.append("")
    out.append(
        "The number behind a mark counts figures: ✓ the same, ✗ not, ~ not decided by these runs, "
        "≈ no effect that matters, ? too few runs, - not run.\n"
    )
    for row, found in run.items():
        out += _section(root, row, found)
    if left:
        out += _not_yet(left)
    out += _own(root)
    out += _replaced(root)
    out.append(TAIL)
    return "\n".join(out)


def _has_older(root: Path) -> bool:
    """Whether any figure or bound on the page is of runs of an older engine."""
    every = [it for experiment in catalogue.experiments() for it in lines(root, experiment)]
    return any(_is_older(it.summary) for it in every if it.summary)


def _summed(
    rows: dict[str, list[Line]],
    run: dict[str, list[Line]],
    left: dict[str, list[Line]],
    has_older: bool,
) -> str:
    every = [it for found in rows.values() for it in found]
    there = [it for it in every if it.verdict != "none"]
    yes = [it for it in there if it.verdict == "yes"]
    by_itself = sum(it.is_by_itself for it in yes)
    sized = [it for it in there if it.size is not None]
    sizes = [it.size for it in sized]
    text = (
        f"{len(there)} of {len(every)} published figures were measured. The direction is the "
        f"published one in {len(yes)} of them (in {by_itself} of these by itself only), another in "
        f"{sum(it.verdict == 'no' for it in there)}, and not decided in the others. "
        f"{len(sized)} have a published value: the size is the same in {sizes.count('yes')}, "
        f"another in {sum(it in ANOTHER for it in sizes)}, and not decided in the others."
    )
    another = [it for it in there if it.is_another]
    tested = sum(bool(it.causes) for it in another)
    text += (
        f" Of {len(another)} figures whose direction or size is another, a cause was tested of "
        f"{tested}: it stands below the table, with what it explains and what it does not."
    )
    if has_older:
        text += (
            f" Runs that are marked as of an *{OLDER}* are from before decisions {DECISIONS}, "
            "which changed how much the pipes hold together and which bytes go next: they do not "
            "say what the present sources do."
        )
    if left:
        text += f" What was not measured yet is [listed below](#{_slug(NOT_MEASURED)})."
    return text + f" Bounds of the laboratory's own are in [a table](#{_slug(OWN_BOUNDS)}).\n"


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
