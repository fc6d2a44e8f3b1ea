# SPDX-License-Identifier: MIT
"""What a friend of rp's notices of those who attack it, and what that costs rp."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments import parameters
from experiments.model import OWN, Claim, Experiment, Figure, Metric
from experiments.workloads import siege
from topologies.addresses import RP_PORT_EXTENDED
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

BASE: Params = {
    "preset": "wired",
    "mbps": 50.0,
    "rtt_ms": 20.0,
    "queue_ms": 50.0,
    "wan_rtt_ms": 0.0,
    "pipes": 4,
}
WORDS = {
    "half-open": "10,000 pipes that say nothing",
    "waiting": "2,400 addresses with a pipe that waits, again and again",
    "slowloris": "512 pipes whose HELLO comes byte by byte",
    "connects-and-resets": "pipes that are reset as soon as they are there",
    "network-of-64": "pipes and sessions from ever new addresses of a /64",
    "pings": "8 sessions of nothing but PINGs",
    "stalled-control": "8 sessions that ask and read no answer",
    "opens-and-resets": "connections opened, and reset at once",
    "bytes-out-of-order": "messages of one byte, out of order",
    "no-key": "handshakes without a key",
    "wrong-key": "handshakes with a wrong key",
    "replayed-handshake": "a friend's handshake, replayed",
    "replayed-hello": "a friend's HELLO, replayed from elsewhere",
    "downgrade": "pipes that are not encrypted, or by TLS 1.2",
    "cut-records": "records that are cut, and the end within them",
    "firewalled": "others, whose pipes to 6010 are dropped as the friend's are",
}
# The bounds.
LEAST_KEPT, MOST_TIMES, MOST_MEMORY = 0.9, 3.0, 1.1


def claims_of(attack: str) -> tuple[Claim, ...]:
    of: Params = {**BASE, "attack": attack, "extend": "auto"}

    def claim(says: str, metric: str, **more: Any) -> Claim:
        text = f"{WORDS[attack]}: {says}"
        return Claim("attacks", OWN, text, of, metric=metric, unit="times", **more)

    return (
        claim(
            "a friend's bulk, to that when it is quiet",
            "bulk_kept",
            expect="more",
            than=LEAST_KEPT,
        ),
        claim(
            "99th percentile of a friend's connects, to that when it is quiet",
            "connect_times",
            than=MOST_TIMES,
        ),
        claim("memory of rp, to its bound (--memory)", "rp_of_bound", than=MOST_MEMORY),
    )


class Attacks(Experiment):
    name = "attacks"
    ways = ("pipes",)
    title = "A friend of rp's beside those who attack it"
    question = "Does who attacks rp cost anybody but itself?"
    parameters = (
        Parameter("attack", "half-open", "text", "what is done to rp", siege.NAMES),
        Parameter("memory", 64, "whole", "rp's --memory, MiB", low=8, high=1 << 20),
        Parameter("quiet_s", 8.0, "number", "for which there is no attack", low=0.5),
        Parameter("attack_s", 8.0, "number", "for which there is", low=0.5, high=60),
        Parameter("every_ms", 20.0, "number", "between two connects of the friend", low=1),
        Parameter(
            "attacker",
            0.25,
            "number",
            "what the attacker may use of a processor",
            low=0.01,
            high=64,
            unit="processors",
        ),
    )
    metrics = (
        Metric(
            "bulk_kept", "rate of a friend's bulk / its rate when quiet", "", "more", matters=0.02
        ),
        Metric(
            "connect_times",
            "99th percentile of a friend's connects / of those when quiet",
            "",
            matters=0.1,
        ),
        Metric("rp_of_bound", "most memory of rp / its bound (--memory)", "", matters=0.05),
        Metric("quiet_mbps", "rate of a friend's bulk when quiet", "Mbit/s", "more"),
        Metric("beside_mbps", "rate of a friend's bulk beside the attack", "Mbit/s", "more"),
        Metric("connect_quiet_p99_ms", "99th percentile of a friend's connects when quiet", "ms"),
        Metric("connect_p99_ms", "99th percentile of a friend's connects beside the attack", "ms"),
        Metric("failed", "connections of the friend that failed", ""),
        Metric("rp_mb", "most memory of rp", "MB"),
        Metric("rp_cpu", "processors that rp took", "", "neither"),
        Metric("refused", "what rp counted as refused", "", "neither"),
    )
    shown = ("connect_times", "rp_of_bound", "connect_p99_ms", "failed", "rp_cpu", "refused")
    grids = ({"extend": "auto", **BASE, "attack": siege.NAMES},)
    reps = 10
    quick_reps = 5
    in_all_quick = False  # what there is takes the time that it has
    packages = ("openssl",)
    run_seconds = 22.0
    claims = tuple(claim for attack in WORDS for claim in claims_of(attack))
    figures = (
        Figure(
            name="bulk",
            title="A friend's bulk beside an attack",
            kind="against",
            y="bulk_kept",
            x="attack",
        ),
        Figure(
            name="connects",
            title="99th percentile of a friend's connects beside an attack",
            kind="against",
            y="connect_times",
            x="attack",
            log=True,
        ),
        Figure(
            name="memory",
            title="Memory of rp beside an attack",
            kind="against",
            y="rp_of_bound",
            x="attack",
        ),
        Figure(
            name="series",
            title="A friend's bulk, quiet and beside an attack",
            kind="series",
            y="series_download_mbps",
        ),
    )
    notes = (
        "A friend has a download without end, and every 20 ms connects to the same server and asks "
        "it for one byte. When that has gone on for some seconds, an attack begins. Both ratios "
        "are of the friend beside the attack to the same friend before it, in one run. A connect "
        "that fails is tried again, and counts until it is served.",
        "The attacker is a program of its own on rp's host, at addresses of 127.0.0.0/8 or of an "
        "IPv6 network of 64 bits, so that it takes nothing of the friend's last mile. A real one "
        "has a machine of its own; this one shares the friend's. So that it does not slow the "
        "friend down by that alone, it measures what it uses, the kernel's work for it included, "
        "and waits whenever that is more than a quarter of a processor (--attacker). Within that "
        "it is as fast as rp lets it be, or spreads a number over the time. What rp, and the "
        "kernel for rp, use because of it is not bounded: that is the attack.",
        "elsewhere is no attack: within the same quarter of a processor, connections to a server "
        "of the attacker's own on rp's host. What the friend notices of it is the machine's, and "
        "not rp's doing.",
        "half-open: 10,000 pipes that say nothing, from 20 addresses, to both ports, of which the "
        "newest 3,500 stay. waiting: 2,400 of as many addresses; whoever is closed comes again. "
        "slowloris: 512 whose HELLO comes byte by byte, from 16 addresses. connects-and-resets: "
        "pipes of 16 addresses, reset as soon as they are there. network-of-64: pipes "
        "from ever new addresses of one network, half of which begin a session. pings: eight "
        "sessions send PINGs without end and read the answers. stalled-control: eight sessions "
        "send PINGs, and open connections that are refused, and read no answer. opens-and-resets: "
        "a session opens 300 connections, and resets them 50 ms later, again and again. "
        "bytes-out-of-order: four sessions send every second message of connections, of one byte.",
        "For no-key, wrong-key, replayed-handshake, downgrade and cut-records rp and the friend "
        "have a key. What OpenSSL's client says in a handshake without a key, with a wrong one, or "
        "with the friend's own, is recorded before, and said again on ever new pipes. downgrade: "
        "a HELLO that is not encrypted, the ClientHello of TLS 1.2, and a pipe of the baseline, in "
        "turn. cut-records: of a friend's handshake all lengths that end within a record, and the "
        "end there; and twice a second a handshake with the friend's key that succeeds, and the "
        "end within the record behind it (OpenSSL's client, beside the allowance).",
        "replayed-hello: rp and the friend have no key. The friend's pipes are reset before it is "
        "measured; the attacker reads the HELLO by which its lp dials again, and says it from "
        "elsewhere, to the byte and as the next incarnation of that pipe. An attacker that is let "
        "in by one of these five makes the run fail.",
        "firewalled: a firewall at rp drops all that goes to 6010 from before lp dials. So the "
        "friend has pipes of the baseline, when quiet too, and the attack are others who dial 6010 "
        "in vain and then begin sessions at 6000. A friend with a key has no pipes at all there: "
        "it never takes 6000 (tests/relay/test_keys.py), so of it there is nothing to measure.",
        "What rp counted as refused is the sum of its `limits`; a run's record has them by kind, "
        "and what the attacker counted. Memory is the most that was resident, friend included; "
        "--memory is 64 MiB. The bounds are the laboratory's own.",
    )

    def rp_options(self, params: Params, folder: Path) -> Sequence[str]:
        own: Any = params
        return [
            *siege.rp_options(own["attack"], own["memory"]),
            *self.lp_options(params, folder),
        ]

    def lp_options(self, params: Params, folder: Path) -> Sequence[str]:
        build = parameters.proxies_folder(params)
        return siege.key_options(str(params["attack"]), folder, build)

    def firewalled(self, params: Params) -> Sequence[int]:
        return (RP_PORT_EXTENDED,) if params["attack"] in siege.FIREWALLED else ()

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        own: Any = {it.name: run.params[it.name] for it in self.parameters}
        return siege.besieged(
            run,
            siege.Siege(
                attack=own["attack"],
                memory_mib=own["memory"],
                quiet_s=own["quiet_s"],
                attack_s=own["attack_s"],
                every_s=own["every_ms"] / 1e3,
                processors=own["attacker"],
            ),
        )
