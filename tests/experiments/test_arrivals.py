# SPDX-License-Identifier: MIT
"""What arrives by each last mile: an event in time, rates before and after it, series."""

import pytest

from experiments.failure import RunFailed
from experiments.workloads.arrivals import STEP_S, Arrivals

RATE = 1_000_000  # bytes a second by each of two paths


def seen(until: float, share: float = 0.4, size: int = 20 * RATE) -> Arrivals:
    """Looks each 50 ms at two paths that begin after 1 s; the second is halved by the event."""
    came, at = [0.0, 0.0], 0.0
    happened: list[bool] = []
    made = Arrivals(
        size=size,
        share=share,
        event=lambda: happened.append(True),
        received=lambda: (int(came[0]), int(came[1])),
        clock=lambda: at,
    )
    for number in range(round(until / 0.05)):
        at = number * 0.05
        made.look()
        if at >= 1.0:
            came[0] += RATE * 0.05
            came[1] += RATE * 0.05 * (0.5 if happened else 1.0)
    assert len(happened) <= 1
    return made


def test_what_is_kept() -> None:
    """Both paths 1.5 of 2, the second a half."""
    found = seen(14.0)
    assert found.happened == pytest.approx(1.0 + 0.4 * 10.0, abs=0.06)
    assert found.kept() == pytest.approx((0.75, 0.5), rel=0.01)
    first, second = found.bytes_per_s(2.0, 4.0)
    assert first == pytest.approx(RATE) and second == pytest.approx(RATE)


def test_series_begin_with_the_first_byte() -> None:
    told = seen(14.0).series()
    assert told["series_step_s"] == STEP_S
    together = told["series_together_mbps"]
    assert len(together) == pytest.approx(13.0 / STEP_S, abs=2)
    assert together[0] == pytest.approx(16.0) and together[-1] == pytest.approx(12.0)
    assert told["series_first_mbps"][-1] == pytest.approx(8.0)
    assert told["series_second_mbps"][-1] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("until", "share", "size", "says"),
    [
        (2.0, 0.4, 20 * RATE, "the event did not happen"),
        (6.0, 0.4, 20 * RATE, "nobody saw 0.9 of the object come"),
        (14.0, 0.4, RATE // 20, "nobody looked twice"),
    ],
)
def test_what_nobody_can_tell(until: float, share: float, size: int, says: str) -> None:
    with pytest.raises(RunFailed, match=says):
        seen(until, share, size).kept()
