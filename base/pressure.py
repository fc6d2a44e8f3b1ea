# SPDX-License-Identifier: MIT
"""How much of the time went by while somebody waited for a core: time that others took."""

import os
import re
import time
from pathlib import Path

SLOWEST = 0.25  # of a second that counts at least, or a busy machine would wait for ever


def pressure_us() -> int | None:
    """How long somebody waited for a core since the machine started; None if it does not tell.

    A virtual machine does not see its host's, which TM3_HOST_PRESSURE names: both count.
    """
    places = [Path("/proc/pressure")]
    if host := os.environ.get("TM3_HOST_PRESSURE"):
        places.append(Path(host))
    found = [waited for place in places if (waited := _waited_us(place / "cpu")) is not None]
    return sum(found) if found else None


def _waited_us(file: Path) -> int | None:
    try:
        text = file.read_text()
    except OSError:
        return None
    found = re.search(r"^some .*total=(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


class OwnTime:
    """A clock that goes while the machine is ours, for limits of what it is to do in that time."""

    def __init__(self) -> None:
        self._begun, self._waited_us = time.monotonic(), pressure_us()

    def passed_s(self) -> float:
        went_s, now_us = time.monotonic() - self._begun, pressure_us()
        if self._waited_us is None or now_us is None:
            return went_s
        return max(SLOWEST * went_s, went_s - (now_us - self._waited_us) / 1e6)

    def went_s(self) -> float:
        """By everybody's clock."""
        return time.monotonic() - self._begun
