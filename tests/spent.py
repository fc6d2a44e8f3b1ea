# SPDX-License-Identifier: MIT
"""What the tests took of the processor, told at the end of a run, and who waited then.

All rooms are told, then the files and the tests that took most. Beside others that run at once the
clock tells little of a test: it waits for a core, or for what it tests. Counted are this process
and the programs that it waited for, with theirs. A worker that had nothing left long before the end
tells of tests that were begun too late (tests/order.py).
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import pytest

NAME = "processor_s"
COSTLIEST_FILES, COSTLIEST_TESTS = 20, 10


def processor_s() -> float:
    return sum(os.times()[:4])


class Spent:
    """A plugin: each report of a test's part has its seconds, on its way from a worker, too."""

    def __init__(self) -> None:
        self._last = 0.0
        self._ended: dict[str, tuple[float, str]] = {}

    def pytest_runtest_logstart(self) -> None:
        self._last = processor_s()

    # The pytest of a guest is older than wrappers that return.
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, None]:
        outcome = yield
        report, now = outcome.get_result(), processor_s()
        report.user_properties = [*report.user_properties, (NAME, now - self._last)]
        self._last = now

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        node = getattr(report, "node", None)  # of pytest-xdist, where there are workers
        if node is not None:
            self._ended[node.gateway.id] = time.monotonic(), report.nodeid

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        reports = [it for some in terminalreporter.stats.values() for it in some]
        told = table([it for it in reports if isinstance(it, pytest.TestReport)])
        told += waits(self._ended) if told else []
        if told:
            terminalreporter.section("processor time")
            terminalreporter.write("\n".join(told) + "\n")


def waits(ended: Mapping[str, tuple[float, str]]) -> list[str]:
    """Of each worker, when it had run its last test, and which one that was."""
    last = max((at for at, _ in ended.values()), default=0.0)
    return [
        f"{last - at:7.1f} s  that {worker} waited at the end, after {nodeid}"
        for worker, (at, nodeid) in sorted(ended.items(), key=lambda it: it[1])
    ]


def file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def room(nodeid: str) -> str:
    """The folder."""
    return file(nodeid).rpartition("/")[0]


def table(reports: Sequence[pytest.TestReport]) -> list[str]:
    """Nothing where little was taken."""
    tests: Counter[str] = Counter()
    for it in reports:
        tests[it.nodeid] += dict(it.user_properties).get(NAME, 0.0)
    if tests.total() < 1:
        return []
    return [
        *told(tests, room),
        *told(tests, file, COSTLIEST_FILES),
        *(f"{s:7.1f} s  {name}" for name, s in tests.most_common(COSTLIEST_TESTS) if s >= 1),
    ]


def told(tests: Counter[str], of: Callable[[str], str], most: int | None = None) -> list[str]:
    """By what tests are `of`: all, or those of `most` that took a second."""
    seconds: Counter[str] = Counter()
    for nodeid, took in tests.items():
        seconds[of(nodeid)] += took
    count = Counter(map(of, tests))
    return [
        f"{s:7.1f} s  {name}, {count[name]} tests"
        for name, s in seconds.most_common(most)
        if s >= 1 or most is None
    ]
