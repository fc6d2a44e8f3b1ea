# SPDX-License-Identifier: MIT
"""What tests of the two proxies share beside a namespace."""

import pytest

from tests.relay import tproxied


@pytest.fixture
def lane(two: tproxied.Two) -> tproxied.Two:
    """`two` with servers' addresses on far; skips where the kernel has no tproxy."""
    tproxied.prepare(two)
    return two
