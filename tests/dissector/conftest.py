# SPDX-License-Identifier: MIT
"""What runs tshark is run with two: the one of this system, and that of `make wireshark`.

A fixture that keeps what tshark said, for several tests, takes `which_tshark`: then it is made anew
for the second one.
"""

import os
from collections.abc import Iterator

import pytest

from tests.dissector import tshark

# These run no tshark.
WITHOUT = ("test_lint", "test_lua", "test_gui")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in WITHOUT:
        return
    which = ["named"] if os.environ.get("TSHARK") else ["here", "newer"]
    metafunc.parametrize("which_tshark", which, indirect=True, scope="session")


@pytest.fixture(scope="session", autouse=True)
def which_tshark(request: pytest.FixtureRequest) -> Iterator[None]:
    if getattr(request, "param", "here") != "newer":
        yield
        return
    reason = tshark.no_newer()
    if reason:
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tshark, "COMMAND", tshark.NEWER)
        yield
