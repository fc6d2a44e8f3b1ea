# SPDX-License-Identifier: MIT
"""What the grader says: a line a check, the level reached, and why not the next."""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import asdict, dataclass

from .registry import EXTRA, LEVEL_TITLES, LEVELS
from .runner import FAIL, NOT_RUN, PASS, Result

FORMAT = 1


@dataclass(frozen=True)
class Verdict:
    level: int
    why_not_next: str


def judge(results: list[Result], highest: int = LEVELS[-1]) -> Verdict:
    """A level is reached when all its checks pass and the lower levels are reached."""
    reached = 0
    for level in LEVELS:
        if level > highest:
            return Verdict(reached, f"level {level} was not asked for")
        mine = [result for result in results if result.level == level]
        failed = [result for result in mine if result.status == FAIL]
        if failed:
            return Verdict(reached, _why(level, len(mine), failed))
        passed = [result for result in mine if result.status == PASS]
        if not passed:
            return Verdict(reached, f"no check of level {level} was run")
        reached = level
    return Verdict(reached, "")


def _why(level: int, count: int, failed: list[Result]) -> str:
    first = failed[0]
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return (
        f"{len(failed)} of {count} checks of level {level} failed: "
        f"{first.name}{more}. {first.name}: {first.seen}"
    )


# A program that ends by a signal loses what its stdout had in a buffer.
SILENT = "\n      RP printed nothing, or did not flush it: stderr, or python3 -u, is not buffered"


def header() -> str:
    return f"{'level':<6}{'check':<26}{'result':<9}{'s':>6}  seen"


def line(result: Result, verbose: bool = False) -> str:
    level = "extra" if result.level == EXTRA else str(result.level)
    seconds = f"{result.seconds:6.2f}" if result.status != NOT_RUN else " " * 6
    start = f"{level:<6}{result.name:<26}{result.status:<9}{seconds}  "
    width = max(60, shutil.get_terminal_size((100, 24)).columns - len(start))
    indent = "\n" + " " * len(start)
    text = start + indent.join(textwrap.wrap(result.seen, width) or [""])
    if result.status == FAIL:
        text += f"{indent}(the check: {result.title})"
        if verbose:
            quoted = textwrap.indent(result.output.rstrip(), "      | ")
            text += f"\n      RP's last output:\n{quoted}" if quoted else SILENT
    return text


def conclusion(verdict: Verdict, results: list[Result]) -> str:
    lines = [""]
    if verdict.level:
        lines.append(f"Level {verdict.level} reached: {LEVEL_TITLES[verdict.level]}.")
    else:
        lines.append("No level reached.")
    if verdict.why_not_next:
        lines.append(f"Not level {verdict.level + 1}: {verdict.why_not_next}")
    extras = [r for r in results if r.level == EXTRA and r.status != NOT_RUN]
    if extras:
        passed = sum(r.status == PASS for r in extras)
        lines.append(f"Beyond the course, not counted: {passed} of {len(extras)} passed.")
    skipped = [r for r in results if r.status == NOT_RUN]
    if skipped:
        lines.append(f"Not run: {len(skipped)} of {len(results)} checks.")
    return "\n".join(lines)


def as_json(
    command: list[str], isolation: str, verdict: Verdict, results: list[Result], seconds: float
) -> dict:
    return {
        "format": FORMAT,
        "rp": command,
        "isolation": isolation,
        "level": verdict.level,
        "why_not_next": verdict.why_not_next,
        "seconds": round(seconds, 1),
        "checks": [asdict(result) for result in results],
    }
