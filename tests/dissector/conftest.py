# SPDX-License-Identifier: MIT
"""What runs tshark is run with two: the one of this system, without the names that nobody asks for,
and that of `make wireshark`.

A fixture that keeps what tshark said, for several tests, takes `which_tshark`: then it is made anew
for the second one.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack

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
    which = getattr(request, "param", "named")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        if which == "here" and not tshark.missing():
            patch.setattr(tshark, "COMMAND", stack.enter_context(tshark.without_names()))
        if which == "newer":
            reason = tshark.no_newer()
            if reason:
                pytest.skip(reason)
            patch.setattr(tshark, "COMMAND", tshark.NEWER)
        yield
