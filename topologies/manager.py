# SPDX-License-Identifier: MIT
"""A wearable's network manager: Bluetooth by way of the phone as long as it reaches, else WiFi.

python -m topologies.manager TRACE UNTIL_S [--policy POLICY] [--PERIOD SECONDS]... [--began TIME]

It follows a trace of that strength by the clock and says what it does when it does it, an act a
line; whoever reads that turns the links. TIME: of time.monotonic(), at which the trace begins; else
that is now. Without a policy it says when Bluetooth dies and lives, and nobody manages anything.

What it does follows from the signal alone, so all of it is known beforehand (`plan`). Three
policies, as published:

    h1  WiFi is enabled when Bluetooth was found dead. The periods are parameters: Bluetooth dead
        and not yet noticed (P1), no network (P2), WiFi connecting (P3), connected and not yet
        used, until the connections of the network that is gone are ended (P4)
    h2  WiFi is enabled when the signal is weak, so P2 and P3 pass while Bluetooth still works
    h3  WiFi is always there, and is moved to when the signal is weak

With h2 and h3 the signal is looked at by discoveries, which take a share of the rate of the network
that is in use.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from enum import Enum
from pathlib import Path

from topologies import rssi as signal
from topologies.parameter import ParameterError, check_choice
from topologies.rssi import Rssi

POLICIES = ("h1", "h2", "h3")
WEAK_DBM, STRONG_DBM = -90.0, -85.0  # published: where to leave Bluetooth, and to come back
DEAD_DBM = -95.0  # ours: below it nothing gets through
ON_BLUETOOTH_S, ON_WIFI_S = 2.0, 5.0  # published: between two discoveries
DISCOVERY_S = 0.5  # ours: that one takes


@dataclass(frozen=True)
class Periods:
    """Seconds; those of the published measurement. `back` is how long h1 is without any network
    when it goes back to Bluetooth."""

    p1: float = 21.1
    p2: float = 11.9
    p3: float = 4.9
    p4: float = 5.6
    back: float = 0.98

    def all(self) -> float:
        return self.p1 + self.p2 + self.p3 + self.p4


class Act(Enum):
    BLUETOOTH_DIES = "bluetooth dies"
    BLUETOOTH_LIVES = "bluetooth lives"
    WIFI_ON = "wifi on"  # it carries packets from here on
    WIFI_OFF = "wifi off"
    USE_WIFI = "use wifi"  # who dials from here on is told to dial there
    USE_BLUETOOTH = "use bluetooth"
    USE_NONE = "use none"
    MOVE = "move"  # who has a connection elsewhere is told to have one there
    END = "end"  # connections of the network that is not in use
    DISCOVER = "discover"
    DISCOVERED = "discovered"


@dataclass(frozen=True)
class Event:
    at_s: float
    act: Act


Told = list[tuple[float | None, Act]]  # None: never


def plan(
    rssi: Rssi, policy: str, periods: Periods, until_s: float, discovery_s: float = DISCOVERY_S
) -> list[Event]:
    """From Bluetooth to WiFi and back again, once. In order; h3's WiFi is there from the start."""
    check_choice("policy", policy, POLICIES)
    told = _radio(rssi)
    if policy == "h1":
        told += _passive(rssi, periods)
    else:
        told += _beforehand(rssi, policy, periods, until_s, discovery_s)
    return [it for it in _in_order(told) if it.at_s <= until_s]


def walked(rssi: Rssi) -> list[Event]:
    """What the signal alone does, with nobody who manages anything."""
    return _in_order(_radio(rssi))


def _in_order(told: Told) -> list[Event]:
    found = [(at, number, act) for number, (at, act) in enumerate(told) if at is not None]
    return [Event(at, act) for at, _, act in sorted(found, key=lambda it: it[:2])]


def _radio(rssi: Rssi) -> Told:
    dies = rssi.below(DEAD_DBM)
    lives = None if dies is None else rssi.above(DEAD_DBM, dies)
    return [(dies, Act.BLUETOOTH_DIES), (lives, Act.BLUETOOTH_LIVES)]


def _passive(rssi: Rssi, periods: Periods) -> Told:
    (dies, _), (lives, _) = _radio(rssi)
    if dies is None or (lives is not None and lives < dies + periods.p1):
        return []  # it was back before anybody noticed
    found = dies + periods.p1
    there = found + periods.p2 + periods.p3
    used = there + periods.p4
    told: Told = [(found, Act.USE_NONE), (there, Act.WIFI_ON), (there, Act.USE_WIFI)]
    told.append((used, Act.END))
    back = rssi.above(STRONG_DBM, used)
    if back is not None:
        told += [(back, Act.USE_NONE), (back, Act.WIFI_OFF), (back, Act.END)]
        told.append((back + periods.back, Act.USE_BLUETOOTH))
    return told


def _beforehand(
    rssi: Rssi, policy: str, periods: Periods, until_s: float, discovery_s: float
) -> Told:
    told: Told = []
    weak = seen(rssi.below(WEAK_DBM), ON_BLUETOOTH_S)
    last = until_s if weak is None else weak
    told += _discoveries(0.0, last, ON_BLUETOOTH_S, discovery_s)
    if weak is None:
        return told
    takes = periods.p2 + periods.p3 if policy == "h2" else 0.0
    moved = weak + takes
    told += [(moved, act) for act in (Act.WIFI_ON, Act.USE_WIFI, Act.MOVE)]
    strong = seen(rssi.above(STRONG_DBM, moved), ON_WIFI_S, moved)
    last = until_s if strong is None else strong
    told += _discoveries(moved, last, ON_WIFI_S, discovery_s)
    told += [(strong, act) for act in (Act.USE_BLUETOOTH, Act.MOVE)]
    return told


def seen(at: float | None, every_s: float, since: float = 0.0) -> float | None:
    """By the first discovery at that time or behind it; there is none at `since` itself."""
    return None if at is None else since + every_s * max(1, math.ceil((at - since) / every_s))


def _discoveries(
    since: float, until: float, every_s: float, takes_s: float
) -> Iterator[tuple[float | None, Act]]:
    number = 1
    while since + number * every_s <= until:
        at = since + number * every_s
        yield at, Act.DISCOVER
        yield at + takes_s, Act.DISCOVERED
        number += 1


def silence_s(rssi: Rssi, policy: str, periods: Periods) -> float:
    """For how long nothing gets through on the way to WiFi, by arithmetic alone."""
    dies = rssi.below(DEAD_DBM)
    if dies is None:
        return 0.0
    if policy == "h1":
        return periods.all()
    weak = seen(rssi.below(WEAK_DBM), ON_BLUETOOTH_S)
    assert weak is not None  # what is dead was weak before
    takes = periods.p2 + periods.p3 if policy == "h2" else 0.0
    return max(0.0, weak + takes - dies)


def words(
    trace: Path, until_s: float, policy: str, periods: Periods, discovery_s: float, began: float
) -> list[str]:
    """Of the command that follows it. `policy` "": none."""
    told = {**asdict(periods), "discovery": discovery_s, "began": began}
    options = [f"--policy={policy}"] if policy else []
    options += [f"--{name}={value!r}" for name, value in told.items()]
    return ["-m", "topologies.manager", str(trace), repr(until_s), *options]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m topologies.manager", allow_abbrev=False)
    made.add_argument("trace", type=Path)
    made.add_argument("until_s", type=float)
    made.add_argument("--policy", choices=POLICIES)
    for it in fields(Periods):
        made.add_argument(f"--{it.name}", type=float, default=it.default)
    made.add_argument("--discovery", type=float, default=DISCOVERY_S)
    made.add_argument("--began", type=float)
    return made


def main(given: Sequence[str]) -> None:
    told = parser().parse_args(given)
    try:
        rssi = signal.read(told.trace)
    except ParameterError as error:
        sys.exit(f"manager: {error}")
    periods = Periods(**{it.name: getattr(told, it.name) for it in fields(Periods)})
    events = walked(rssi)
    if told.policy:
        events = plan(rssi, told.policy, periods, told.until_s, told.discovery)
    began = time.monotonic() if told.began is None else told.began
    for event in events:
        time.sleep(max(0.0, began + event.at_s - time.monotonic()))
        print(event.act.value, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
