# SPDX-License-Identifier: MIT
"""What the tests of `tm3ctl --bpf` need: tm3bpf, cgroup2, and a kernel that permits it."""

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.bpf import road
from tests.conftest import why_no_namespace
from tests.relay.netns import Namespace

# What tm3bpf says of machines that cannot do it. Anything else that it says is a failure.
UNABLE = re.compile(
    r"there is no cgroup2 here|no cgroup can be made|does not permit|has no BPF|this kernel cannot"
)


@cache
def why_no_bpf() -> str | None:
    """Why nothing can be redirected so here; None if it can."""
    reason = why_no_namespace()
    if reason:
        return reason
    if not road.TM3BPF.exists():
        return f"there is no {road.TM3BPF}: make bpf"
    argv = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    done = subprocess.run(
        [*argv, road.TM3BPF, "--local-port", "1", "--", "true"], capture_output=True, text=True
    )
    if not done.returncode:
        return None
    assert UNABLE.search(done.stderr), done.stderr
    return done.stderr.strip().splitlines()[-1]


def cgroup2() -> Path:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return Path(next(it[1] for it in mounts if it[2] == "cgroup2"))


@pytest.fixture
def way(two: tuple[Namespace, Namespace], tmp_path: Path) -> Iterator[road.Road]:
    reason = why_no_bpf()
    if reason:
        pytest.skip(reason)
    with road.built(two, tmp_path) as way:
        yield way


@pytest.fixture
def cgroup(way: road.Road) -> Iterator[Path]:
    """One of the test's own."""
    path = cgroup2() / f"tm3-test-{os.getpid()}"
    path.mkdir()
    yield path
    path.rmdir()
