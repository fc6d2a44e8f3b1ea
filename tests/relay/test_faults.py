# SPDX-License-Identifier: MIT
"""Each call of rp and lp that may fail does so once: no leak, no spin, no lie.

What is made to fail, and where, is in tests/faults/README.md.
"""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import why_no_namespace
from tests.relay.fault_scene import (
    BASELINE,
    DOORS,
    EXTENSION,
    KEYS,
    MOVES,
    NAMES,
    WORKERS,
    Setup,
)
from tests.relay.fault_trial import Fault, all_fail_once, fresh_faults, met_in
from tests.relay.faults import faulty
from tests.relay.kinds import IPPROTO_MPTCP, why_not


def setups() -> dict[str, Setup]:
    """With keys, all of the extension is there and TLS, too."""
    if why_no_namespace():
        return {}
    linked = subprocess.run(["ldd", faulty("rp")], capture_output=True, text=True, check=True)
    encrypts = "libssl" in linked.stdout
    return {
        "extension": KEYS if encrypts else EXTENSION,
        "baseline": BASELINE,
        "workers": WORKERS,
        "doors": DOORS,
        **({"moves": MOVES} if encrypts and not why_not(IPPROTO_MPTCP) else {}),
    }


def faults(tmp: Path, name: str, program: str) -> list[Fault]:
    """All of a setup that no setup before it has."""
    named = setups()
    earlier = list(named).index(name)
    known = met_in(tmp, list(named.values())[:earlier])
    return [it for it in fresh_faults(tmp, named[name], known) if it.program == program]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("setup", "program"),
    [
        *((setup, it) for setup in ("extension", "baseline", "doors", "moves") for it in NAMES),
        ("workers", "rp"),
    ],
)
def test_each_place_fails_once(tmp_path: Path, setup: str, program: str) -> None:
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    if setup not in setups():
        pytest.skip("it takes pipes over MPTCP, and a key")
    all_of = faults(tmp_path, setup, program)
    assert all_of, f"{program} has no place of its own in this setup"
    all_fail_once(tmp_path, all_of)
