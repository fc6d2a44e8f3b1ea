# SPDX-License-Identifier: MIT
"""How much of the time went by while somebody waited for a core: time that others took."""

import os
import re
import time
from pathlib import Path

# Set in a machine whose clock counts its instructions: nothing outside makes it late (vm/accel.py).
OWN_CLOCK = "TM3_OWN_CLOCK"
SLOWEST = 0.25  # of a second that counts at least, or a busy machine would wait for ever


def pressure_us() -> int | None:
    """How long somebody waited for a core since the machine started; None if it does not tell.

    A virtual machine does not see that it waits for its host's cores itself. Two variables name
    what the host knows of that; what they name is added:

        TM3_HOST_PRESSURE   the host's pressure: how long any of its programs waited
        TM3_HOST_THREADS    schedstat of each thread that runs a processor of this machine, with a
                            colon between: how long these waited
    """
    found = [_waited_us(Path("/proc/pressure/cpu"))]
    if host := os.environ.get("TM3_HOST_PRESSURE"):
        found.append(_waited_us(Path(host) / "cpu"))
    if threads := os.environ.get("TM3_HOST_THREADS"):
        found += [_thread_waited_us(Path(it)) for it in threads.split(":")]
    told = [waited for waited in found if waited is not None]
    return sum(told) if told else None


def _waited_us(file: Path) -> int | None:
    try:
        text = file.read_text()
    except OSError:
        return None
    found = re.search(r"^some .*total=(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def _thread_waited_us(schedstat: Path) -> int | None:
    """How long a thread had something to do, and no core."""
    try:
        _, waited_ns, _ = schedstat.read_text().split()
    except OSError:
        return None
    return int(waited_ns) // 1000


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
