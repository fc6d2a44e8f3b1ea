# SPDX-License-Identifier: MIT
"""Each call of rp and lp that may fail does so once: no leak, no spin, no lie.

What is made to fail, and where, is in tests/faults/README.md.
"""

import errno
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import why_no_namespace
from tests.relay.fault_scene import (
    BASELINE,
    DOORS,
    EXTENSION,
    KEYS,
    MOVES,
    NAMES,
    READY,
    WORKERS,
    Refused,
    Scene,
    Setup,
    User,
    scene,
)
from tests.relay.faults import ERRORS, Place, described, faulty, happened, places
from tests.relay.kinds import IPPROTO_MPTCP, why_not
from tests.relay.programs import Program
from tests.relay.waiting import until

# They wait for most of the time.
AT_ONCE = 4
SERVED_AGAIN_S = 20
# Some places are reached only if messages or threads come in a certain order.
TRIES = 3


def setups() -> dict[str, Setup]:
    """With keys, all of the extension is there and TLS, too."""
    if why_no_namespace():
        return {}
    linked = subprocess.run(["ldd", faulty("rp")], capture_output=True, text=True, check=True)
    encrypts = "libssl" in linked.stdout
    return {
        "extension": KEYS if encrypts else EXTENSION,
        "baseline": BASELINE,
        "workers": WORKERS,
        "doors": DOORS,
        **({"moves": MOVES} if encrypts and not why_not(IPPROTO_MPTCP) else {}),
    }


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


def faults(tmp: Path, name: str, program: str) -> list[Fault]:
    """All of a setup that no setup before it has."""
    found: list[Fault] = []
    seen: set[Place] = set()
    for earlier, setup in setups().items():
        held, calls = counted(tmp / earlier, setup)
        fresh = [place for place in calls[program] if place not in seen]
        seen.update(fresh)
        if earlier == name:
            _, again = counted(tmp / f"{earlier} again", setup)
            for place in fresh:
                chance = place not in again[program]
                found += [Fault(setup, program, place, e, held, chance) for e in ERRORS[place.kind]]
            break
    return found


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("setup", "program"),
    [
        *((setup, it) for setup in ("extension", "baseline", "doors", "moves") for it in NAMES),
        ("workers", "rp"),
    ],
)
def test_each_place_fails_once(tmp_path: Path, setup: str, program: str) -> None:
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    if setup not in setups():
        pytest.skip("it takes pipes over MPTCP, and a key")
    all_of = faults(tmp_path, setup, program)
    assert all_of, f"{program} has no place of its own in this setup"
    where = described(program, [fault.place for fault in all_of])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        folders = [tmp_path / str(number) for number in range(len(all_of))]
        tried = list(pool.map(Fault.met, all_of, folders))
    wrong, missed, sure = [], [], []
    for fault, (failed, what) in zip(all_of, tried, strict=True):
        at = f"{program}: {fault.place.kind} {fault.error} at {where[fault.place]}"
        if what:
            wrong.append(f"{at}\n{what}")
        if not failed:
            missed.append(at)
        if not fault.by_chance:
            sure.append(failed)
    assert not wrong, f"{len(wrong)} of {len(all_of)} faults:\n" + "\n\n".join(wrong)
    print(f"{len(all_of)} faults; not met again by chance:", *missed, sep="\n  ")
    assert sure.count(False) <= len(sure) // 10 + 1, missed
