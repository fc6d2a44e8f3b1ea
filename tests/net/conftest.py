# SPDX-License-Identifier: MIT
"""What the tests of topologies need: root, Mininet, linkem; and a registry of their own."""

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import why_no_namespace

if TYPE_CHECKING:
    from tests.net.standing import Standing
    from topologies.lab import Lab

TOOLS = ("mnexec", "tc", "ping", "nft", "ethtool", "tcpdump", "sysctl", "mount")

# So much nicer are other tests, which run beside, to what is measured here.
AHEAD = 10


def why_no_lab() -> str | None:
    reason = why_no_namespace()
    if reason:
        return reason
    for tool in TOOLS:
        if shutil.which(tool) is None:
            return f"no {tool} on this machine: make setup"
    if importlib.util.find_spec("mininet") is None:
        return "no Mininet for this Python: make setup"
    return None


@pytest.fixture(autouse=True)
def ahead_of_other_tests() -> Iterator[None]:
    """What is measured has the processor first: a test's programs inherit it."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, before - AHEAD)
    try:
        yield
    finally:
        if os.geteuid() == 0:
            os.setpriority(os.PRIO_PROCESS, 0, before)


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Labs may be made; where they are written down. Whatever is left there is a failure."""
    reason = why_no_lab()
    if reason:
        pytest.skip(reason)
    registry = Path("/run") / f"tm3-test-{os.getpid()}-{tmp_path.name}"
    monkeypatch.setenv("TM3_RUN", str(registry))
    from topologies.registry import clean

    try:
        yield registry
        left = sorted(registry.iterdir()) if registry.exists() else []
        assert not left, f"a lab left {left}"
    finally:
        clean(living=True)
        if registry.exists():
            registry.rmdir()


@pytest.fixture(params=["linkem", "netem"])
def realisation(request: pytest.FixtureRequest, labs: Path) -> str:
    """Both, where the kernel lets us."""
    from topologies.qdisc import why_no_netem

    missing = why_no_netem() if request.param == "netem" else None
    if missing:
        pytest.skip(missing)
    return request.param


@pytest.fixture(scope="session")
def standing() -> Iterator["Standing | None"]:
    """Labs that outlive a test; none where none can be made."""
    if why_no_lab():
        yield None
        return
    from tests.net.standing import Standing

    labs = Standing(Path("/run") / f"tm3-test-{os.getpid()}-standing")
    yield labs
    left = labs.close()
    assert not left, f"a lab left {left}"


@pytest.fixture
def lab_of(
    realisation: str, standing: "Standing", tmp_path: Path
) -> Callable[..., "AbstractContextManager[Lab]"]:
    """lab_of(preset, **options): a lab by this realisation, for as long as a with block lasts."""
    return partial(standing.lab, link=realisation, logs=tmp_path)
