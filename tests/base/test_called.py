# SPDX-License-Identifier: MIT
"""How a program was called: what of that is kept."""

import sys

import pytest

from base import called


@pytest.mark.parametrize("given", [["--results", "DIR"], ["--results=DIR"], ["--results"], []])
def test_where_results_go_is_not(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bin/tm3lab", "run", "udp", "--quick", *given])
    assert called.words() == ["bin/tm3lab", "run", "udp", "--quick"]
