# SPDX-License-Identifier: MIT
"""What the tests of each room took of the processor, told at the end of a run.

Beside others that run at once the clock tells little of a test: it waits for a core, or for what
it tests. Counted are this process and the programs that it waited for, with theirs.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Generator, Sequence
from typing import Any

import pytest

NAME = "processor_s"
COSTLIEST = 10


def processor_s() -> float:
    return sum(os.times()[:4])


class Spent:
    """A plugin: each report of a test's part has its seconds, on its way from a worker, too."""

    def __init__(self) -> None:
        self._last = 0.0

    def pytest_runtest_logstart(self) -> None:
        self._last = processor_s()

    # The pytest of a guest is older than wrappers that return.
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, None]:
        outcome = yield
        report, now = outcome.get_result(), processor_s()
        report.user_properties = [*report.user_properties, (NAME, now - self._last)]
        self._last = now

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        reports = [it for some in terminalreporter.stats.values() for it in some]
        told = table([it for it in reports if isinstance(it, pytest.TestReport)])
        if told:
            terminalreporter.section("processor time")
            terminalreporter.write("\n".join(told) + "\n")


def room(nodeid: str) -> str:
    """The folder."""
    return nodeid.partition("::")[0].rpartition("/")[0]


def table(reports: Sequence[pytest.TestReport]) -> list[str]:
    """Rooms by what they took, then the tests that took most; nothing where little was taken."""
    tests: dict[str, set[str]] = defaultdict(set)
    rooms: Counter[str] = Counter()
    each: Counter[str] = Counter()
    for it in reports:
        seconds = dict(it.user_properties).get(NAME, 0.0)
        rooms[room(it.nodeid)] += seconds
        each[it.nodeid] += seconds
        tests[room(it.nodeid)].add(it.nodeid)
    lines = [f"{s:7.1f} s  {name}, {len(tests[name])} tests" for name, s in rooms.most_common()]
    lines += [f"{s:7.1f} s  {name}" for name, s in each.most_common(COSTLIEST) if s >= 1]
    return lines if rooms.total() >= 1 else []
