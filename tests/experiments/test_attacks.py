# SPDX-License-Identifier: MIT
"""Attacks on rp: each is one, is held back, and what a friend sees of it is told as that."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from experiments.catalogue import attacks, find
from experiments.workloads import siege
from experiments.workloads.attacks import messages
from experiments.workloads.attacks.allowance import AHEAD_S, Allowance
from experiments.workloads.attacks.attack import ATTACKS
from experiments.workloads.attacks.attacker import Attacker
from experiments.workloads.attacks.besieger import AttackFailed, Besieger, besieger
from experiments.workloads.attacks.messages import Hello
from experiments.workloads.attacks.pipes import NETWORK
from experiments.workloads.connects import Connects
from experiments.workloads.play import actor_of
from experiments.workloads.siege import Moments, p99_of, seen
from tests.relay import records
from tests.relay.netns import Namespace
from tests.relay.programs import ROOT
from tests.relay.proxies import EXTENDED, local_proxy, remote_proxy
from tests.relay.waiting import until

VECTORS = ROOT / "tests" / "vectors" / "vectors.json"


def vector(kind: str, name: str) -> bytes:
    told = json.loads(VECTORS.read_text())[kind]
    (found,) = [it for it in told if it["name"] == name]
    return bytes.fromhex(found["hex"])


def test_messages_are_those_of_the_wire() -> None:
    assert messages.syn(1, "192.0.2.33", 443) == vector("baseline", "syn")
    assert messages.data(1, 1, b"A") == vector("baseline", "data-1-byte")
    assert messages.fin(1, 5) == vector("baseline", "fin-0x88")
    assert messages.fin(1, 0, messages.BY_RST) == vector("baseline", "fin-0x99")
    assert messages.open_(1, "192.0.2.33", 443) == vector("extension", "open-ipv4")
    ping, token = vector("extension", "ping"), 0xB8B7B6B5B4B3B2B1
    assert messages.ping(token) == ping[:17] + bytes(8)
    session = bytes.fromhex("00112233445566778899aabbccddeeff")
    hello = vector("extension", "hello")
    assert Hello(session, 2, 4).to_bytes()[:-4] == hello[:-4], "but for what lp keeps out of order"


def test_the_time_of_ended_threads_counts() -> None:
    before = siege.cpu_s(os.getpid())
    thread = threading.Thread(target=lambda: sum(range(3_000_000)))
    thread.start()
    thread.join()
    assert 0.005 < siege.cpu_s(os.getpid()) - before < 5


class Clocks:
    """Of the wall and of a process."""

    def __init__(self) -> None:
        self.at = self.used = 0.0

    def allowance(self, processors: float) -> Allowance:
        return Allowance(processors, lambda: self.at, lambda: self.used)


def test_who_used_more_than_its_share_waits() -> None:
    clocks = Clocks()
    it = clocks.allowance(0.25)
    clocks.at, clocks.used = 1.0, 0.35
    assert it.owed_s() == pytest.approx(0.4), "of 0.35 s a quarter of a second was earned"
    clocks.at += 0.1
    assert it.owed_s() == pytest.approx(0.3)
    clocks.at += 0.3
    assert it.owed_s() == pytest.approx(0.0)
    assert it.used_s() == 0.35


def test_what_was_not_used_is_not_saved_up() -> None:
    clocks = Clocks()
    it = clocks.allowance(0.5)
    clocks.at = 100.0
    assert it.owed_s() == 0.0
    clocks.used = AHEAD_S + 0.01
    assert it.owed_s() == pytest.approx(0.02)


def test_a_number_is_spread_over_nine_tenths_of_the_time() -> None:
    it = Attacker(seconds=0.2, processors=1.0)
    assert list(it.each(5)) == [0, 1, 2, 3, 4]
    assert it.allowance.used_s() < 0.1
    it.over.set()
    assert list(it.each(5)) == []


def served(*took: tuple[float, float]) -> dict[str, Any]:
    return {"served": list(took), "failed": []}


def test_the_99th_percentile_is_of_connects_that_were_due_in_a_time() -> None:
    told = [(n / 100, 0.05) for n in range(200)]
    told[150] = (1.5, 3.0)
    told[151] = (1.51, 3.0)
    assert p99_of(told, 0.0, 1.0) == pytest.approx(0.05)
    assert p99_of(told, 1.0, 2.0) == pytest.approx(3.0)
    assert p99_of(told, 2.0, 3.0) is None


def test_what_a_friend_sees() -> None:
    """10 MB in a second when quiet, 8 beside; a connect takes 50 ms, and then 100."""
    began = 100.0
    bins = [0] * 10 + [1_000_000] * 10 + [800_000] * 10
    download = {"began": began, "bins": bins, "resets": [100.5, 102.5]}
    connects = served((101.5, 0.05), (102.5, 0.1)) | {"failed": [101.2, 102.1, 102.2]}
    found = seen(download, connects, Moments((101.0, 102.0), (102.0, 103.0)))
    assert (found["quiet_mbps"], found["beside_mbps"]) == (pytest.approx(80), pytest.approx(64))
    assert found["bulk_kept"] == pytest.approx(0.8)
    assert found["connect_times"] == pytest.approx(2.0)
    assert (found["connect_quiet_p99_ms"], found["connect_p99_ms"]) == (
        pytest.approx(50),
        pytest.approx(100),
    )
    assert found["failed"] == 3, "from the attack on"


def test_a_download_that_came_to_its_end_kept_nothing() -> None:
    download = {"began": 0.0, "bins": [1_000_000] * 10, "resets": []}
    found = seen(download, served(), Moments((0.0, 1.0), (1.0, 2.0)))
    assert (found["bulk_kept"], found["connect_times"]) == (0.0, None)


def test_each_attack_is_claimed_to_cost_no_friend() -> None:
    assert set(attacks.WORDS) == set(siege.NAMES) - {siege.NONE}
    assert len(find("attacks").claims) == 3 * len(attacks.WORDS)


def test_who_connects_again_and_again_is_told_to_the_client() -> None:
    actor = Connects(port=7000, every_s=0.5)
    assert actor_of(actor.described()) == actor


@contextmanager
def attacker(box: Namespace, folder: Path, name: str, processors: float) -> Iterator[Besieger]:
    """In the namespace of rp, whose key is in `folder`; it has not begun."""
    told = siege.Siege(
        attack=name,
        memory_mib=64,
        quiet_s=0.0,
        attack_s=2.0,
        every_s=1.0,
        processors=processors,
    )
    with besieger(box.command(siege.program(told, 4, folder))) as they:
        yield they


def options(box: Namespace, folder: Path, name: str) -> list[str]:
    """Of an rp that is attacked."""
    words = [*siege.rp_options(name, 64), *siege.key_options(name, folder, None)]
    if name not in siege.KEYED:
        words += ["--listen", "127.0.0.1"]
    if name in siege.FIREWALLED:
        box.nft(
            "table ip t { chain in { type filter hook input priority 0; tcp dport 6010 drop; }; }"
        )
    if name in siege.FROM_IPV6:
        box.ip("-6", "route", "add", "local", f"{NETWORK}/64", "dev", "lo")
    return words


def friend_of(box: Namespace, folder: Path, name: str) -> AbstractContextManager[object]:
    """Whose HELLO is to be overheard."""
    if name in ("replayed-hello",):
        return local_proxy(box, folder, asan=False, ready=EXTENDED)
    return nullcontext()


# What rp counts of each at least, where it refuses something at once; and what the attacker does.
COUNTED: dict[str, tuple[tuple[str, int] | None, dict[str, int]]] = {
    "half-open": (("waiting", 100), {"pipes": 2_000}),
    "waiting": (("waiting", 1_400), {"pipes": 2_000}),  # 600 and more have places
    "slowloris": (None, {"pipes": 50, "bytes": 50}),
    "connects-and-resets": (None, {"pipes": 200}),
    "network-of-64": (("sessions", 20), {"pipes": 50}),
    "elsewhere": (None, {"pipes": 10}),
    "pings": (None, {"pipes": 1, "bytes": 100_000}),
    "stalled-control": (("memory", 1), {"pipes": 1, "bytes": 500_000}),
    "opens-and-resets": (None, {"pipes": 4, "opens": 300, "connects": 1}),
    "bytes-out-of-order": (("memory", 1), {"pipes": 4, "bytes": 1_000_000}),
    "no-key": (("hello", 20), {"pipes": 20}),
    "wrong-key": (("hello", 20), {"pipes": 20}),
    "replayed-handshake": (("hello", 20), {"pipes": 20}),
    "replayed-hello": (("elsewhere", 20), {"pipes": 20}),
    "downgrade": (("hello", 20), {"pipes": 20, "refused": 10}),
    "cut-records": (None, {"pipes": 100, "records cut behind a handshake": 1}),
    "firewalled": (("sessions", 5), {"pipes": 20, "in vain": 5}),
}
LASTS_S = 4.0  # where rp tells nothing


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_is_one(box: Namespace, tmp_path: Path, name: str) -> None:
    """By what rp says of it."""
    stats = tmp_path / "stats.jsonl"
    told, least = COUNTED[name]
    words = [*options(box, tmp_path, name), *records.soon(stats)]

    def counted(kind: str) -> int:
        limits = records.of(stats, "limits")
        return int(limits[-1][kind]) if limits else 0

    with (
        remote_proxy(box, tmp_path, *words, asan=False) as rp,
        friend_of(box, tmp_path, name),
        attacker(box, tmp_path, name, 1.0) as they,
    ):
        they.go()
        if told:
            kind, times = told
            until(f"{kind} to be counted", lambda: counted(kind) >= times)
        else:
            time.sleep(LASTS_S)
        counts = they.end()
        assert rp.running()
    assert not counts.get("got in"), counts
    assert all(counts[what] >= number for what, number in least.items()), counts


def test_an_attacker_keeps_to_its_allowance(box: Namespace, tmp_path: Path) -> None:
    with (
        remote_proxy(box, tmp_path, *options(box, tmp_path, "pings"), asan=False),
        attacker(box, tmp_path, "pings", 0.1) as they,
    ):
        began = time.monotonic()
        they.go()
        time.sleep(1.0)
        counts = they.end()
        allowed_ms = 100 * (time.monotonic() - began)
    assert 0 < counts["ms of processors"] < 1.5 * allowed_ms, counts


def python(program: str) -> list[str]:
    return [sys.executable, "-S", "-c", program]


def test_an_attacker_that_fails_says_why() -> None:
    with pytest.raises(AttackFailed, match="not ready: no attack"):
        with besieger(python("raise SystemExit('no attack')")):
            pass
    with besieger(python("print('ready'); raise SystemExit('no route')")) as they:
        they.process.wait(10)
        they.go()
        with pytest.raises(AttackFailed, match="ended with 1: no route"):
            they.end()
