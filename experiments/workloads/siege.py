# SPDX-License-Identifier: MIT
"""A friend of rp's, quiet and then beside an attack, in one run.

The attacker is a program of its own in rp's namespace: it needs no link, and takes nothing of the
friend's last mile.
"""

import json
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.shell import run as finished
from base.shell import sleep_until, until
from experiments.failure import RunFailed
from experiments.prepare import STATS_INTERVAL_S
from experiments.workloads import rates, traffic
from experiments.workloads.actors import BIN_S
from experiments.workloads.attacks.attack import ATTACKS, NAMED
from experiments.workloads.attacks.besieger import AttackFailed, Besieger, besieger
from experiments.workloads.attacks.pipes import NETWORK
from experiments.workloads.connects import Connects
from experiments.workloads.redialling import BulkAgain
from topologies.addresses import RP_PORT_EXTENDED
from topologies.nodes import has_ipv6, set_sysctls
from topologies.programs import built

if TYPE_CHECKING:
    from experiments.live_run import LiveRun
    from topologies.lab import Lab

NAMES = tuple(ATTACKS)
NONE = "elsewhere"  # of these the one that is no attack on rp
# Of these rp and the friend have a key,
KEYED = ("no-key", "wrong-key", "replayed-handshake", "downgrade", "cut-records")
FIREWALLED = ("firewalled",)  # and of these a firewall at rp drops all that goes to 6010
FROM_IPV6 = ("network-of-64",)
FRIEND = "friend"
BEGIN_S = 2.0  # until the download has its rate
TOLD_S = 10.0  # until rp's statistics have all that it counted
CLOCK_OF_PROCESS = 2  # CPUCLOCK_SCHED of the kernel: the scheduler's account
LO_WITHOUT_IPV6 = "net.ipv6.conf.lo.disable_ipv6"


@dataclass(frozen=True, kw_only=True)
class Siege:
    attack: str
    memory_mib: int  # rp's --memory
    quiet_s: float
    attack_s: float
    every_s: float  # between two connects of the friend's
    processors: float  # that the attacker may use


@dataclass(frozen=True)
class Moments:
    """Of time.monotonic(): the friend is quiet, then there is an attack."""

    quiet: tuple[float, float]
    attack: tuple[float, float]


@dataclass(frozen=True)
class Cost:
    """Of an attack, to rp: processors meanwhile, and what it refused, by kinds."""

    processors: float
    refused: dict[str, int]


def key_file(folder: Path) -> Path:
    """Of rp and of the friend, for one run."""
    return folder / f"{FRIEND}.key"


def key_options(attack: str, folder: Path, build: Path | None) -> list[str]:
    """Of both proxies; who asks first has the key made."""
    if attack not in KEYED:
        return []
    path = key_file(folder)
    if not path.exists():
        line = finished([built("lp", build), "--make-key", FRIEND])
        path.touch(0o600)
        path.write_text(line)
    return ["--key-file", str(path)]


def rp_options(attack: str, memory_mib: int) -> list[str]:
    """An address of IPv6 that is there before rp's host has any."""
    more = ["--extended", f"[::]:{RP_PORT_EXTENDED}"] if attack in FROM_IPV6 else []
    return ["--memory", str(memory_mib), *more]


@contextmanager
def addresses_of_ipv6(lab: "Lab") -> Iterator[None]:
    """rp's host has IPv6 on its loopback, and a network whose addresses are all its own."""
    if not has_ipv6():
        raise RunFailed("this kernel has no IPv6, from which the attack comes")
    node = lab.rp
    route = ("local", f"{NETWORK}/64", "dev", "lo")
    set_sysctls(node.namespace, {LO_WITHOUT_IPV6: "0"})
    try:
        node.inside("ip", "-6", "route", "add", *route)
        yield
    finally:
        set_sysctls(node.namespace, {LO_WITHOUT_IPV6: "1"})


def besieged(run: "LiveRun", siege: Siege) -> dict[str, Any]:
    """What the friend sees, and what it costs rp. Raises RunFailed."""
    assert run.pair is not None
    if siege.attack in FIREWALLED and run.pair.dialect() != "baseline":
        raise RunFailed(f"{siege.attack}: the friend came by the {run.pair.dialect()}")
    actors = {
        "download": BulkAgain(port=traffic.PORT),
        "connects": Connects(port=traffic.PORT, every_s=siege.every_s),
    }
    argv = run.lab.state.enter("rp", program(siege, run.pair.pipes, run.folder))
    key_file(run.folder).unlink(missing_ok=True)
    try:
        with ExitStack() as stack:
            if siege.attack in FROM_IPV6:
                stack.enter_context(addresses_of_ipv6(run.lab))
            they = stack.enter_context(besieger(argv, run.lab.state.environment()))
            with traffic.beside(run, actors, "client") as found:
                moments, cost = watched(run, siege, they)
    except AttackFailed as why:
        raise RunFailed(str(why)) from None
    most = most_resident(run.pair.rp.pid)
    return seen(found["download"], found["connects"], moments) | {
        "rp_of_bound": most / (siege.memory_mib << 20),
        "rp_mb": most / 1e6,
        "rp_cpu": cost.processors,
        "refused": sum(cost.refused.values()),
    }


def watched(run: "LiveRun", siege: Siege, they: Besieger) -> tuple[Moments, Cost]:
    """A quiet time, then the attack; what the attacker counted is a fact of the run."""
    assert run.pair is not None
    rp = run.pair.rp.pid
    began = run.went + BEGIN_S
    sleep_until(began + siege.quiet_s)
    before, cpu_before_s = limits(run), cpu_s(rp)
    they.go()
    attacked = time.monotonic()
    sleep_until(attacked + siege.attack_s)
    over = time.monotonic()
    processors = (cpu_s(rp) - cpu_before_s) / (over - attacked)
    counts = they.end()
    run.facts["attacker"] = counts
    if counts.get("got in"):
        raise RunFailed(f"{siege.attack}: the attacker was let in: {counts}")
    if not counts.get("pipes"):
        raise RunFailed(f"{siege.attack}: the attacker reached nobody: {counts}")
    refused = told_since(run, before)
    run.facts["refused"] = refused
    moments = Moments((began, began + siege.quiet_s), (attacked, over))
    return moments, Cost(processors, refused)


def program(siege: Siege, pipes: int, folder: Path) -> list[str]:
    """The attacker. In `folder` is the friend's key, where there is one."""
    scene: dict[str, Any] = {
        "attack": siege.attack,
        "pipes": pipes,
        "seconds": siege.attack_s,
        "processors": siege.processors,
        "name": FRIEND,
    }
    if "key" in NAMED.get(siege.attack, ()):
        scene["key"] = b64decode(key_file(folder).read_text().split()[1]).hex()
    return traffic.command("attacks.attack", json.dumps(scene))


def cpu_s(pid: int) -> float:
    """Of all threads of a process since it began, those that ended among them: its own clock, see
    clock_getcpuclockid()."""
    return time.clock_gettime_ns(~pid << 3 | CLOCK_OF_PROCESS) / 1e9


def most_resident(pid: int) -> int:
    """Bytes, ever."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def limits(run: "LiveRun") -> dict[str, int]:
    """What rp told so far of what it refused."""
    assert run.pair is not None
    told = [it for it in run.pair.statistics("rp") if it["type"] == "limits"]
    return {name: n for name, n in told[-1].items() if isinstance(n, int)} if told else {}


def told_since(run: "LiveRun", before: dict[str, int]) -> dict[str, int]:
    """By kinds; those that there were."""
    assert run.pair is not None
    pair, ended = run.pair, time.time()

    def told() -> bool:
        """Counters that changed are told of with the next sample."""
        return bool(pair.statistics("rp")[-1].get("time", 0) > ended + STATS_INTERVAL_S)

    until("rp's statistics of what it refused", told, TOLD_S)
    grown = {name: n - before.get(name, 0) for name, n in limits(run).items()}
    return {name: n for name, n in grown.items() if n and name != "time"}


def seen(download: dict[str, Any], connects: dict[str, Any], moments: Moments) -> dict[str, Any]:
    """By the friend."""
    began, bins = download["began"], download["bins"]
    quiet, beside = (
        rates.mbps(bins, since - began, until - began)
        for since, until in (moments.quiet, moments.attack)
    )
    p99 = [
        p99_of(connects["served"], since, until) for since, until in (moments.quiet, moments.attack)
    ]
    failed = [it for it in (*connects["failed"], *download["resets"]) if it >= moments.attack[0]]
    return {
        "bulk_kept": (beside or 0.0) / quiet if quiet else None,
        "connect_times": p99[1] / p99[0] if p99[0] and p99[1] else None,
        "quiet_mbps": quiet,
        "beside_mbps": beside,
        "connect_quiet_p99_ms": 1e3 * p99[0] if p99[0] else None,
        "connect_p99_ms": 1e3 * p99[1] if p99[1] else None,
        "failed": len(failed),
        "series_step_s": BIN_S,
        "series_download_mbps": rates.series_mbps(bins, width=1),
    }


def p99_of(served: list[tuple[float, float]], since: float, until: float) -> float | None:
    """Of those that were due between two moments, until the friend left at the latest."""
    took = [took for due, took in served if since <= due < until]
    return rates.quantile(took, 0.99) if took else None
