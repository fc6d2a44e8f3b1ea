# SPDX-License-Identifier: MIT
"""What every test shares: what this machine can do, and a namespace to do it in."""

import gc
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests import alone, order
from tests.relay.netns import Namespace, namespace, two_on_a_link
from tests.spent import Spent


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Spent())
    alone.begin(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # a worker's of pytest-xdist
        places = order.places([item.nodeid for item in items])
        items[:] = [
            item for _, item in sorted(zip(places, items, strict=True), key=lambda it: it[0])
        ]


def pytest_collection_finish() -> None:
    """What there is now stays to the end: who looks for garbage need not look at it each time."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With -n; another --dist than its default is obeyed."""
    if config.option.dist != "load":
        return None
    config.option.loadscopereorder = False
    return order.scheduling()(config, log)


@cache
def why_no_namespace() -> str | None:
    """Why network namespaces cannot be made here; None if they can."""
    for tool in ("unshare", "nsenter", "ip", "ss", "setpriv"):
        if shutil.which(tool) is None:
            return f"no {tool} on this machine"
    if os.geteuid() != 0:
        return "needs root to make network namespaces: sudo make test"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    return f"no network namespace can be made: {tried.stderr.strip()}" if tried.returncode else None


@pytest.fixture
def box() -> Iterator[Namespace]:
    """A network namespace of the test's own, with nothing but loopback."""
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    with namespace("box") as ns:
        yield ns


@pytest.fixture
def two() -> Iterator[tuple[Namespace, Namespace]]:
    """Two namespaces on one link: 10.77.0.1 (lp's side) and 10.77.0.2 (rp's side)."""
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    with two_on_a_link() as both:
        yield both
