# SPDX-License-Identifier: MIT
"""The grader's command line."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from . import (
    checks,  # noqa: F401  (fills the registry)
    report,
    runner,
)
from .registry import CHECKS, EXTRA, LEVELS, Check

EPILOG = """
The command is run with the number of pipes as its last argument, and is expected to listen on
port 6000: --rp ./a.out, --rp 'java remote_proxy', --rp 'build/rp --verbose'.
Exit status: 0 level 4 reached (with --level N: level N; with --check: all named checks passed),
1 not reached, 2 wrong usage.
"""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="grade",
        description="Grade a TM3 remote proxy by the four levels of the hand-out.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rp", metavar="COMMAND", help="the remote proxy, without its argument")
    parser.add_argument(
        "--json", metavar="FILE", nargs="?", const="-", help="JSON to FILE, or instead of the table"
    )
    parser.add_argument("--level", type=int, choices=LEVELS, help="only up to this level")
    parser.add_argument("--check", metavar="NAME", action="append", help="only this check")
    parser.add_argument("--all", action="store_true", help="go on where a level was not reached")
    parser.add_argument("--list", action="store_true", help="list the checks and stop")
    parser.add_argument("--verbose", action="store_true", help="show what a failing RP printed")
    parser.add_argument("--jobs", type=int, default=0, help="checks at a time (default: 2)")
    parser.add_argument(
        "--patience", type=float, default=1.0, metavar="X", help="multiply all deadlines by this"
    )
    parser.add_argument(
        "--host", action="store_true", help="no namespaces: the host's loopback, one at a time"
    )
    options = parser.parse_args(arguments)
    if not options.list:
        complain(parser, options)
    return options


def complain(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Say what is wrong with the options, and exit 2."""
    if not options.rp or not options.rp.strip():
        parser.error("which remote proxy? Say --rp 'COMMAND' (make grade RP='COMMAND')")
    try:
        options.command = shlex.split(options.rp)
    except ValueError as err:
        parser.error(f"--rp: {err}")
    if shutil.which(options.command[0]) is None:
        parser.error(f"--rp: {options.command[0]} is not a program that can be run")
    if options.patience <= 0:
        parser.error("--patience must be more than 0")
    if options.jobs < 0:
        parser.error("--jobs must be at least 1")
    if options.check and options.level:
        parser.error("--check and --level do not go together")
    known = {check.name for check in CHECKS}
    for name in options.check or ():
        if name not in known:
            parser.error(f"--check: there is no check {name!r}; --list shows them")


def list_checks() -> None:
    for check in CHECKS_IN_ORDER:
        print(f"{check.level_text:<6}{check.name:<26}{check.title}")


# Without these no other check can pass.
FIRST_OF_ALL = ("starts", "connects")
CHECKS_IN_ORDER: list[Check] = sorted(CHECKS, key=lambda check: check.level)


class Grading:
    """One run of the grader: what is graded, where, and who is told."""

    def __init__(self, options: argparse.Namespace, settings: runner.Settings) -> None:
        self.options = options
        self.settings = settings
        self.table = options.json != "-"
        self.results: list[runner.Result] = []

    def show(self, result: runner.Result) -> None:
        if self.table:
            print(report.line(result, self.options.verbose), flush=True)

    def run(self) -> None:
        if self.table:
            print(report.header(), flush=True)
        if self.options.check:
            chosen = [check for check in CHECKS_IN_ORDER if check.name in self.options.check]
            self.results = runner.run_all(chosen, self.settings, self.show)
            return
        highest = self.options.level or EXTRA
        why = ""
        for level in (*LEVELS, EXTRA):
            if level <= highest:
                why = self._run_level(level, why)

    def _run_level(self, level: int, why_not: str) -> str:
        """Run a level's checks unless a lower one was not reached; why the next is not to be."""
        mine = [check for check in CHECKS_IN_ORDER if check.level == level]
        if why_not:
            self.results += [runner.not_run(check, why_not) for check in mine]
            return why_not
        results: list[runner.Result] = []
        # One after another while each decides whether there is anything more to grade.
        while mine and mine[0].name in FIRST_OF_ALL:
            check = mine.pop(0)
            results += runner.run_all([check], self.settings, self.show)
            if results[-1].status == runner.FAIL and not self.options.all:
                why_not = f"{check.name} failed"
                self.results += results + [runner.not_run(other, why_not) for other in mine]
                return why_not
        results += runner.run_all(mine, self.settings, self.show)
        self.results += results
        failed = any(result.status == runner.FAIL for result in results)
        return f"level {level} not reached" if failed and not self.options.all else ""


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.list:
        list_checks()
        return 0
    how, why_not = ("", "--host") if options.host else runner.probe_namespace()
    jobs = (options.jobs or 2) if how else 1
    if not how:
        print(
            f"grade: no network namespaces ({why_not}): checks use the host's loopback and "
            f"port 6000, one after another",
            file=sys.stderr,
        )
        if runner.port_is_taken():
            print("grade: port 6000 is in use; stop the program that has it", file=sys.stderr)
            return 2
    started = time.monotonic()
    grading = Grading(
        options, runner.Settings(options.command, options.patience, jobs, isolated=bool(how))
    )
    try:
        grading.run()
    except KeyboardInterrupt:
        print("grade: interrupted", file=sys.stderr)
        return 130
    return finish(options, grading, how or "the host's loopback", time.monotonic() - started)


def finish(options: argparse.Namespace, grading: Grading, isolation: str, seconds: float) -> int:
    """Say the verdict in the form that was asked for; the exit status."""
    results = grading.results
    highest = options.level or LEVELS[-1]
    verdict = report.judge(results, highest)
    if options.json:
        answer = report.as_json(options.command, isolation, verdict, results, seconds)
        text = json.dumps(answer, indent=1)
        if options.json == "-":
            print(text)
        else:
            Path(options.json).write_text(text + os.linesep)
    failed = any(result.status == runner.FAIL for result in results)
    if options.check:
        return 1 if failed or not results else 0
    if grading.table:
        print(report.conclusion(verdict, results))
        print(f"{seconds:.1f} s, {grading.settings.jobs} at a time, {isolation}.")
    return 0 if verdict.level >= highest else 1
