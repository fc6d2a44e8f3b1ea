# SPDX-License-Identifier: MIT
"""In which order tests are run, and which of them one worker of pytest-xdist runs together.

A worker takes a test at a time. Workers that took many at once waited at the end for the one that
had the long ones; xdist's own groups (loadgroup) are ignored by pytest 9.2.

Tests of one file are alike: they wait for something, or they compute. Taken file by file, all
workers waited for minutes while no core had work, and later all had to share the cores. So each
file's tests are dealt out over the whole run, and at any time some wait and some compute.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

# What these measure suffers from others that measure: one worker runs them all, one by one. It
# takes minutes, and begins at once.
MEASURING = (
    "tests/net/test_web_beside.py",
    "tests/net/test_truth.py",
    "tests/net/test_blocking.py",
    "tests/net/test_one_queue.py",
)
# Their tests take longest by the clock, from 20 s on: they begin in the first half of the run, for
# who begins a long one last keeps the others waiting.
LONGEST = (
    "bench/ramp/test_ramp.py",
    "tests/experiments/test_catalogue_traffic.py",
    "tests/experiments/test_guest.py",
    "tests/experiments/test_handover.py",
    "tests/experiments/test_runner_real.py",
    "tests/experiments/test_runner_spread.py",
    "tests/experiments/test_runner_stopped.py",
    "tests/experiments/test_watch_lab.py",
    "tests/experiments/test_web_load.py",
    "tests/experiments/test_workload_traffic.py",
    "tests/grade/test_grade.py",
    "tests/install/test_deb.py",
    "tests/install/test_static.py",
    "tests/kmod/test_build.py",
    "tests/relay/test_faults.py",
    "tests/relay/test_ids.py",
    "tests/relay/test_ids_again.py",
    "tests/relay/test_plain_compiler.py",
    "tests/relay/test_sessions.py",
    "tests/relay/test_slow_readers.py",
    "tests/unit/test_c_unit.py",
)
# Their tests look at what is the whole machine's, as cgroups are, or at the whole tree, which is
# read once if one worker runs a folder's.
FOLDERS = ("tests/bpf", "tests/house")
# Their tests share a fixture: it is made once if one worker runs them all.
SHARING = (
    "bench/ramp/test_ramp.py",
    "bench/test_load.py",
    "tests/dissector/test_again.py",
    "tests/dissector/test_content.py",
    "tests/dissector/test_follow.py",
    "tests/dissector/test_large.py",
    "tests/dissector/test_list.py",
    "tests/dissector/test_losses.py",
    "tests/dissector/test_malformed.py",
    "tests/dissector/test_mptcp.py",
    "tests/dissector/test_order.py",
    "tests/dissector/test_samples.py",
    "tests/dissector/test_statistics.py",
    "tests/dissector/test_vectors.py",
    "tests/experiments/test_page_paths.py",
    "tests/experiments/test_plots.py",
    "tests/experiments/test_report_page.py",
    "tests/experiments/test_runner_spread.py",
    "tests/experiments/test_site.py",
    "tests/experiments/test_splitter.py",
    "tests/experiments/test_web_load.py",
    "tests/install/test_deb.py",
    "tests/install/test_install.py",
    "tests/install/test_static.py",
    "tests/kmod/test_build.py",
    "tests/relay/test_control.py",
    "tests/relay/test_hints.py",
    "tests/relay/test_plain_compiler.py",
    "tests/unit/test_srpt_oracle.py",
    "tests/vm/test_machine.py",
    "tests/vm/test_units.py",
    "tests/vm/test_vmhost.py",
)


def module_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def places(nodeids: Sequence[str]) -> list[float]:
    """By which tests are sorted where there are workers: from 0, the beginning of the run, to 1.
    All tests of a file that one worker runs together stand at one place."""
    tests = Counter(map(module_of, nodeids))
    before: Counter[str] = Counter()
    found: list[float] = []
    for module in map(module_of, nodeids):
        share = (before[module] + 0.5) / tests[module]
        if module in SHARING:
            share = (SHARING.index(module) + 0.5) / len(SHARING)
        if module in LONGEST:
            share /= 2
        found.append(0.0 if module in MEASURING else share)
        before[module] += 1
    return found


def together(nodeid: str) -> str:
    """The same for all tests that one worker runs."""
    module = module_of(nodeid)
    if module in MEASURING:
        return "measuring"
    folder = module.rpartition("/")[0]
    if folder in FOLDERS:
        return folder
    return module if module in SHARING else nodeid


@cache
def scheduling() -> "type[LoadScopeScheduling]":
    """Only where there is xdist."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    return Scheduling
