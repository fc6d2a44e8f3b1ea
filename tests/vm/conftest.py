# SPDX-License-Identifier: MIT
"""A kernel without tm3.ko before and after, and the road on which it is tried."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.relay.netns import Namespace
from tests.vm import module, road

# How much longer a test may take under the debug kernel.
SLOWER = 4


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if module.DEBUG else ():
        limit = item.get_closest_marker("timeout")
        if limit and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(SLOWER * limit.args[0]), append=False)


@pytest.fixture
def log() -> Iterator[module.Log]:
    with module.clean_kernel() as log:
        yield log


@pytest.fixture
def way(log: module.Log, two: tuple[Namespace, Namespace], tmp_path: Path) -> Iterator[road.Road]:
    with road.built(two, tmp_path, log) as way:
        yield way
