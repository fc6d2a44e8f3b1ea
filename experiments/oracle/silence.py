# SPDX-License-Identifier: MIT
"""The shortest time in which an object can arrive where one of the paths is silent for a while.

Whoever knows beforehand from when on a path loses everything, and until when, gives it nothing
meanwhile, and goes on at once afterwards with the window of before. Nobody who learns of it by what
is not acknowledged is sooner, whatever he sends again.
"""

from collections.abc import Sequence

from experiments.oracle.optimum import fresh_completion, fresh_sent, soonest
from experiments.oracle.path import FRESH_WINDOW, OracleError, Path, check_size


def fresh_completion_through(
    paths: Sequence[Path],
    size: float,
    silent: str,
    begins: float,
    lasts: float,
    window: float = FRESH_WINDOW,
) -> float:
    """Seconds until the last byte arrives, where the path named `silent` carries nothing of what
    enters it from `begins` on, seconds after the object is there, for so long. Windows fresh."""
    check_size(size)
    if silent not in {path.name for path in paths}:
        raise OracleError(f"silent: no path is called {silent}")

    def sent(path: Path, seconds: float) -> float:
        if path.name == silent and seconds > begins:
            seconds = max(begins, seconds - lasts)
        return fresh_sent(path, seconds, window)

    undisturbed = fresh_completion(paths, size, window)
    return soonest(
        lambda until: sum(sent(path, until - path.delay) for path in paths) >= size,
        undisturbed,
        undisturbed + lasts,
    )
