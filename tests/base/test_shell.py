# SPDX-License-Identifier: MIT
"""Commands that are run: what they say, and one line for whatever goes wrong."""

import re

import pytest

from base.pressure import OwnTime
from base.shell import CommandError, run


def test_what_it_writes() -> None:
    assert run(["cat"], stdin="said\n") == "said\n"


@pytest.mark.parametrize(("argv", "seconds", "says"), [
    (["/no/such/command"], 20, "/no/such/command: not installed"),
    (["sh", "-c", "echo why >&2; exit 3"], 20, "sh -c echo why >&2; exit 3: why"),
    (["sh", "-c", "exit 3"], 20, "sh -c exit 3: exit 3"),
    (["sleep", "20"], 0.2, "sleep 20: no end within 0.2 s"),
])  # fmt: skip
def test_what_goes_wrong(argv: list[str], seconds: float, says: str) -> None:
    with pytest.raises(CommandError, match=f"^{re.escape(says)}$"):
        run(argv, seconds=seconds)


def test_what_others_take_is_not_held_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the time is the machine's own; what the command is given arrives nevertheless."""
    monkeypatch.setattr(OwnTime, "passed_s", lambda _: 0.0)
    assert run(["sh", "-c", "sleep 0.5; cat"], stdin="said", seconds=0.2) == "said"
