# SPDX-License-Identifier: MIT
"""A scene is played while one call fails, and what is wrong with what follows."""

import errno
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.relay.fault_scene import NAMES, READY, Refused, Scene, Setup, User, scene
from tests.relay.faults import ERRORS, Place, described, happened, places
from tests.relay.programs import Program
from tests.relay.waiting import until

# They wait for most of the time.
AT_ONCE = 4
SERVED_AGAIN_S = 20
# Some places are reached only if messages or threads come in a certain order.
TRIES = 3


def sees(user: User) -> str | None:
    """How a user was refused; who hangs or is lied to fails the test."""
    try:
        user()
    except Refused as told:
        return str(told)
    return None


def works(user: User) -> bool:
    with suppress(Refused):
        user()
        return True
    return False


def refuses_to_start(proxy: Program) -> None:
    proxy.assert_sane()
    code = proxy.process.wait()
    assert code in (1, 2), f"{proxy.name} ended with {code}"
    assert not proxy.lines(READY[proxy.name]), f"{proxy.name} ended after it was up"
    last = (proxy.log.splitlines() or [""])[-1]
    assert last.startswith(f"{proxy.name}: "), f"its last line is {last!r}"
    assert "this kernel has no" not in last, f"it says that {last!r}, and a call failed once"


def plays(it: Scene, fails: str | None = None, fault: str | None = None) -> dict[str, int]:
    """The whole of it; the descriptors that both have at its end."""
    for name in NAMES:
        if not it.start(name, fault if name == fails else None):
            assert name == fails, f"{name} ended, and nothing was wrong with it"
            refuses_to_start(it.proxies.pop(name))
            return {}
    for user in it.users():
        seen = sees(user)
        assert fault or seen is None, f"nothing is wrong, and a user was refused: {seen}"
    it.asked_to_report()
    for user in it.users():
        until(f"{user.__name__} again", lambda user=user: works(user), SERVED_AGAIN_S)
    it.is_quiet()
    return it.held()


@dataclass(frozen=True)
class Fault:
    """What is tried, and what both held where nothing failed."""

    setup: Setup
    program: str
    place: Place
    error: str
    normal: dict[str, int]
    by_chance: bool  # two runs of the same do not both come there

    def no_more_held(self, it: Scene) -> bool:
        return all(count <= self.normal[name] for name, count in it.held().items())

    def tried(self, tmp: Path) -> tuple[bool, str | None]:
        """Whether the call failed, and what is wrong with what followed."""
        how = f"{self.place.kind} {self.place.name} {getattr(errno, self.error)}"
        with scene(tmp, self.setup) as it:
            try:
                if plays(it, self.program, how):
                    until(
                        f"descriptors to be no more than {self.normal}",
                        lambda: self.no_more_held(it),
                    )
                it.end()
            except (AssertionError, OSError) as wrong:
                return True, f"{type(wrong).__name__}: {wrong}\n{it.logs()}"
            return happened(it.report(self.program), self.place), None

    def met(self, tmp: Path) -> tuple[bool, str | None]:
        """The same, tried again where the call was not reached by chance."""
        tmp.mkdir()
        for number in range(TRIES):
            failed, wrong = self.tried(tmp / str(number))
            if failed:
                break
        return failed, wrong


def counted(tmp: Path, setup: Setup) -> tuple[dict[str, int], dict[str, list[Place]]]:
    """What both hold where nothing fails, and the places of each."""
    with scene(tmp, setup) as it:
        held = plays(it)
        it.end()
        return held, {name: places(it.report(name)) for name in NAMES}


def met_in(tmp: Path, setups: Sequence[Setup]) -> dict[str, set[Place]]:
    """The places of each program in all of these, where nothing fails."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        folders = [tmp / f"known {number}" for number in range(len(setups))]
        played = [calls for _, calls in pool.map(counted, folders, setups)]
    return {name: {place for calls in played for place in calls[name]} for name in NAMES}


def fresh_faults(tmp: Path, setup: Setup, known: Mapping[str, Container[Place]]) -> list[Fault]:
    """All at places of a setup that are not known yet, of both programs."""
    with ThreadPoolExecutor(2) as pool:
        played = pool.map(lambda folder: counted(tmp / folder, setup), ("once", "again"))
        (held, calls), (_, again) = played
    return [
        Fault(setup, name, place, error, held, by_chance=place not in again[name])
        for name in NAMES
        for place in calls[name]
        if place not in known[name]
        for error in ERRORS[place.kind]
    ]


def all_fail_once(tmp: Path, all_of: Sequence[Fault]) -> None:
    """Fails with all that was wrong behind any of them, or if too many were not met."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        folders = [tmp / str(number) for number in range(len(all_of))]
        tried = list(pool.map(Fault.met, all_of, folders))
    wrong, missed, sure = [], [], []
    where = {
        name: described(name, [it.place for it in all_of if it.program == name]) for name in NAMES
    }
    for fault, (failed, what) in zip(all_of, tried, strict=True):
        place = where[fault.program][fault.place]
        at = f"{fault.program}: {fault.place.kind} {fault.error} at {place}"
        if what:
            wrong.append(f"{at}\n{what}")
        if not failed:
            missed.append(at)
        if not fault.by_chance:
            sure.append(failed)
    assert not wrong, f"{len(wrong)} of {len(all_of)} faults:\n" + "\n\n".join(wrong)
    print(f"{len(all_of)} faults; not met again by chance:", *missed, sep="\n  ")
    assert sure.count(False) <= len(sure) // 10 + 1, missed
