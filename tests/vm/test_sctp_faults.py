# SPDX-License-Identifier: MIT
"""Calls that rp and lp make over SCTP and never over TCP, in the guest's kernel: each fails once.

What is made to fail, and where, is in tests/faults/README.md.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.relay.fault_scene import BASELINE, EXTENSION, SCTP
from tests.relay.fault_trial import Fault, all_fail_once, fresh_faults, met_in

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("TM3_GUEST") != "1", reason="SCTP is of the guest's kernel: make test-vm"
    ),
    pytest.mark.timeout(600),
]
# Return addresses of a place that matter here. The carrier asks the kernel for eight callers, and
# deals itself with what the kernel refuses: none of the eight sees it.
NEAR = 2


def one_of_each(faults: Iterable[Fault]) -> list[Fault]:
    """One of those that differ only in who called the carrier, by preference one that is sure."""
    found: dict[tuple[object, ...], Fault] = {}
    for it in sorted(faults, key=lambda it: it.by_chance):
        place = it.place
        found.setdefault((it.program, place.kind, it.error, *place.addresses[:NEAR]), it)
    return list(found.values())


def test_each_call_fails_once(tmp_path: Path) -> None:
    over_tcp = met_in(tmp_path, [EXTENSION, BASELINE])
    faults = one_of_each(fresh_faults(tmp_path, SCTP, over_tcp))
    assert {"sctp-set", "sctp-get", "sctp-send"} <= {it.place.kind for it in faults}
    all_fail_once(tmp_path, faults)
