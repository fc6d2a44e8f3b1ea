# SPDX-License-Identifier: MIT
"""Sessions of a plan: far enough apart for the machine, and what else it does, to be another."""

import select
import time

from experiments.folder import Results
from experiments.progress import Progress
from experiments.stopping import Stop


def begins(results: Results, number: int) -> float:
    """When a session may begin, by the clock: 0 for the first, and for one that has begun."""
    ended = 0.0
    for record in results.runs():
        session = record.get("session", 0)
        if session == number:
            return 0.0
        if session < number:
            ended = max(ended, record["started"] + record["took_s"])
    return ended + results.plan.apart_s if ended else 0.0


def wait(
    results: Results, number: int, until: float, progress: Progress, stop: Stop | None
) -> bool:
    """Until a session may begin; False if that is after `until`, by time.monotonic().

    Without `stop` a signal raises Stopped by itself."""
    wait_s = begins(results, number) - time.time()
    if wait_s <= 0:
        return True
    at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time.time() + wait_s))
    which = f"session {number + 1} of {results.plan.sessions}"
    if time.monotonic() + wait_s > until:
        progress.note(f"time is up before {which} may begin: {at}")
        return False
    progress.note(f"{which} begins at {at}")
    if stop is None:
        time.sleep(wait_s)
    else:
        select.select([stop], [], [], wait_s)
        stop.check("between two sessions")
    return True
