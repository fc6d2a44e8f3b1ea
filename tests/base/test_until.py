# SPDX-License-Identifier: MIT
"""A limit is of the machine's own time, not of what others took of it."""

from pathlib import Path

import pytest

from base import pressure, shell
from base.shell import until


class Clock:
    """Time that goes by sleep alone, in place of the module: this machine may stand still."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (pressure, shell):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which a guest sees how its host is pressed; nobody else presses this machine."""
    file = tmp_path / "cpu"
    real = pressure._waited_us
    monkeypatch.setenv("TM3_HOST_PRESSURE", str(tmp_path))
    monkeypatch.setattr(pressure, "_waited_us", lambda it: real(it) if it == file else 0)
    return file


def pressed(file: Path, share: float, clock: Clock) -> None:
    """From now on, and always."""
    waited_us = round(1e6 * share * clock.monotonic())
    file.write_text(f"some avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}\n")


def test_what_a_guest_s_processors_waited_counts(
    host: Path, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them, in the format of /proc/*/task/*/schedstat; one that is gone tells nothing."""
    host.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n")
    files = [tmp_path / name for name in ("one", "other", "gone")]
    monkeypatch.setenv("TM3_HOST_THREADS", ":".join(map(str, files)))
    files[0].write_text("900000000 2000000 31\n")
    files[1].write_text("400000000 1000000 5\n")
    assert pressure.pressure_us() == 7 + 2000 + 1000
    begun = pressure.OwnTime()
    clock.sleep(1.0)
    files[1].write_text("800000000 401000000 9\n")
    assert begun.passed_s() == pytest.approx(0.6)


@pytest.mark.parametrize(("share", "at_least_s"), [(0.0, 0.5), (0.5, 1.0), (1.0, 2.0)])
def test_a_limit_waits_while_others_have_the_machine(
    host: Path, clock: Clock, share: float, at_least_s: float
) -> None:
    def never() -> bool:
        pressed(host, share, clock)
        return False

    pressed(host, share, clock)
    begun = clock.monotonic()
    with pytest.raises(TimeoutError, match=r"waited 0\.5 s \(\d+ by the clock\) for nothing"):
        until("nothing", never, 0.5)
    assert at_least_s < clock.monotonic() - begun < at_least_s + 0.1


def test_what_comes_late_on_a_busy_machine_is_in_time(host: Path, clock: Clock) -> None:
    begun = clock.monotonic()

    def comes() -> bool:
        pressed(host, 0.7, clock)
        return clock.monotonic() - begun > 0.9

    pressed(host, 0.7, clock)
    assert until("what takes three times as long", comes, 0.5)
