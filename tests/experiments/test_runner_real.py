# SPDX-License-Identifier: MIT
"""Runs in a lab: recorded whatever becomes of them, with the same losses for the same seed."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from base.processes import environment_has, everybody
from base.shell import until
from experiments import campaign, labs, machine
from experiments.failure import RunFailed
from experiments.folder import Results
from experiments.live_run import LiveRun
from experiments.plan import Plan
from experiments.runner import Keep
from experiments.workloads import traffic
from tests.conftest import why_no_namespace
from tests.experiments.runner_lab import configuration, download, experiment, records, runner
from topologies.programs import built
from topologies.registry import MARK, run_dir

pytestmark = [
    pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace())),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun for linkem"),
]


def labs_of(pid: int) -> list[Path]:
    return list(run_dir().glob(f"{pid}-*"))


def test_a_run_is_recorded(tmp_path: Path) -> None:
    with runner(tmp_path, download) as made:
        (record,) = records(made, configuration(warm=True))
        assert made.results.runs() == [record]
        assert labs_of(os.getpid())
    assert record["outcome"] == "ok", record
    assert record["params"]["pipes"] == 2
    assert 0.16 < record["completion_s"] < 5
    assert record["link"] == "linkem"
    assert record["dialect"] == "extension"
    assert record["warm"]["bytes"] == 1_000_000
    assert len(record["warm"]["cwnd"]) == 2
    assert record["links"]["mile down"]["in_bytes"] > 200_000
    assert {path.name for path in (made.results.path / record["logs"]).iterdir()} > {
        *("rp.log", "lp.log", "rp.stats.jsonl", "client.log")
    }
    (lab,) = json.loads((made.results.path / "meta.json").read_text())["labs"].values()
    assert lab["nodes"]["client"]["sysctls"]["net.ipv4.tcp_sack"] == "1"
    assert lab["nodes"]["rp"]["cc_of_pipes"] == ["cubic", "cubic"]
    assert not labs_of(os.getpid())


def test_a_run_keeps_how_the_machine_kept_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its own packets alone; past a bound it is void, and leaves no logs."""
    with runner(tmp_path, download, keep=Keep()) as made:
        monkeypatch.setattr(machine, "beyond", lambda told: "")
        first, second = records(made, configuration(), reps=2)
        monkeypatch.setattr(machine, "beyond", lambda told: "linkem was late")
        (void,) = records(made, configuration())
    for record in (first, second):
        late = record["machine"]["late_us"]["mile down"]
        assert 0 <= late["p99"] <= late["max"]
        assert 130 < late["packets"] < 1000, "200 KB, and nothing of another run's"
        assert record["machine"]["took_s"] > 0.1 and record["machine"]["load"] >= 0
        assert record["started"] < record["went"] < record["started"] + record["took_s"]
    assert (void["outcome"], void["error"]) == ("void", "linkem was late")
    assert void["logs"] is None and not (made.results.path / "logs" / void["id"]).exists()


def test_a_run_may_call_itself_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whose client had too little of a processor; a reason that is none is none."""
    monkeypatch.setattr(machine, "beyond", lambda told: "")
    busy = iter((2.81, 2.79, 2.81))

    def measure(run: LiveRun) -> dict[str, Any]:
        run.void(machine.too_slow("client", next(busy), 4.0))
        return {"completion_s": 4.0}

    with runner(tmp_path, measure, keep=Keep()) as made:
        void, ok = records(made, configuration(way="direct"), reps=2)
        made.keep = Keep(late=True)
        (kept,) = records(made, configuration(way="direct"))
    assert (void["outcome"], ok["outcome"], kept["outcome"]) == ("void", "ok", "ok")
    assert void["error"] == "machine too slow: the client took 0.70 of a core"


def test_the_lab_and_what_is_kept_stay_up_between_runs(tmp_path: Path) -> None:
    seen = []

    def measure(run: LiveRun) -> dict[str, Any]:
        found = download(run)
        kept = run.kept("traffic", lambda: traffic.server(run.lab))
        mile = run.lab.links["mile"].mile
        cc = run.lab.client.inside("ip", "route", "show", "default").split()[-1]
        seen.append((run.lab.name, kept.pid, mile.loss_down, mile.rtt_ms, cc, bool(run.pair)))
        return found

    with runner(tmp_path, measure) as made:
        chosen = [
            configuration(),
            configuration(way="direct", loss=0.01, cc="reno"),
            configuration(preset="lossy", rtt_ms=20),
        ]
        done = records(made, *chosen)
    assert [record["outcome"] for record in done] == ["ok"] * 3
    assert len({(name, pid) for name, pid, *_ in seen}) == 1
    assert sorted(it[2:] for it in seen) == [
        *((0.0, 10.0, "cubic", True), (0.01, 10.0, "reno", False), (0.01, 20.0, "cubic", True))
    ]


def test_the_same_seed_meets_the_same_losses(tmp_path: Path) -> None:
    """Of two configurations and of two runs of one; another seed meets others."""
    drops: dict[tuple[int, int], list[list[int]]] = {}

    def measure(run: LiveRun) -> dict[str, Any]:
        """300 datagrams, one way; which of them did not arrive."""
        numbers = lost_of_datagrams(run, 300)
        drops.setdefault((run.seed, int(run.params["rtt_ms"])), []).append(numbers)
        return {}

    with runner(tmp_path, measure) as made:
        chosen = [configuration(way="direct", loss=0.1, rtt_ms=rtt) for rtt in (10, 30)]
        records(made, *chosen, reps=2)
        records(made, *chosen, reps=2)
    assert len(drops) == 4
    first, second = (
        [numbers for (seed, _), found in drops.items() if seed == wanted for numbers in found]
        for wanted in (1, 2)
    )
    assert len(first) == len(second) == 4
    assert all(numbers == first[0] for numbers in first)
    assert all(numbers == second[0] for numbers in second)
    assert first[0] != second[0]
    assert 10 < len(first[0]) < 60


RECEIVE = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("10.0.9.2", 9999))
print("ready", file=sys.stderr, flush=True)
got = set()
while (n := int(sock.recv(100))) >= 0:
    got.add(n)
print(*got)
"""
SEND = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in [*range(int(sys.argv[1])), *[-1] * 50]:
    sock.sendto(str(n).encode(), ("10.0.9.2", 9999))
    time.sleep(0.0005)
"""


def lost_of_datagrams(run: LiveRun, count: int) -> list[int]:
    from topologies.programs import program

    argv = ["/usr/bin/python3", "-S", "-c", RECEIVE]
    with program(run.lab.state, "server", "receiver", argv, ready="ready") as receiver:
        run.lab.client.inside("/usr/bin/python3", "-S", "-c", SEND, str(count))
        until("the last datagram", lambda: not receiver.running())
        got = {int(word) for word in receiver.out.split()}
    return sorted(set(range(count)) - got)


def test_a_failure_is_recorded_with_its_logs_and_the_next_run_has_a_new_lab(
    tmp_path: Path,
) -> None:
    labs = []

    def measure(run: LiveRun) -> dict[str, Any]:
        labs.append(run.lab)
        found = download(run, 50_000)
        if len(labs) == 1:
            run.kept("traffic", lambda: traffic.server(run.lab)).process.kill()
            return download(run)
        return found

    with runner(tmp_path, measure) as made:
        failed, fine = records(made, configuration(), reps=2)
        assert made.results.runs() == [failed, fine]
    assert (failed["outcome"], fine["outcome"]) == ("failed", "ok")
    assert failed["error"].startswith("RunFailed: client ended with 1: ")
    assert failed["completion_s"] is None
    logs = made.results.path / failed["logs"]
    assert "RunFailed" in (logs / "error.txt").read_text()
    assert "ready on 10.0.9.2" in (logs / "lab-traffic.log").read_text()
    assert (logs / "rp.log").exists()
    assert labs[0] is not labs[1]


def test_late_is_what_had_its_own_time(tmp_path: Path) -> None:
    """And not what failed after its lab took long to make."""

    def measure(run: LiveRun) -> dict[str, Any]:
        late = run.seed % 2 == 0
        run.deadline = time.monotonic() + (-1 if late else 1)
        raise RunFailed(f"it had {'all' if late else 'none'} of its time")

    with runner(tmp_path, measure, limit_s=0.001) as made:
        found = {it["error"]: it["outcome"] for it in records(made, configuration(), reps=2)}
    told = "RunFailed: it had {} of its time"
    assert found == {told.format("all"): "timeout", told.format("none"): "failed"}


def test_logs_of_runs_that_went_well_are_kept_of_repetition_0_only(tmp_path: Path) -> None:
    with runner(tmp_path, lambda run: download(run, 1000)) as made:
        first, second = records(made, configuration(), reps=2)
    assert (first["logs"], second["logs"]) == (f"logs/{first['id']}", None)
    assert [path.name for path in (made.results.path / "logs").iterdir()] == [first["id"]]
    with runner(tmp_path, lambda run: download(run, 1000), keep=Keep(logs=True, late=True)) as made:
        _, second = records(made, configuration(), reps=2)
    assert second["logs"] == f"logs/{second['id']}"


def test_a_part_may_begin_with_any_repetition(tmp_path: Path) -> None:
    """The logs of earlier runs are gone when the record of a further lab is made."""
    with runner(tmp_path, lambda run: download(run, 1000)) as made:
        configurations = (configuration(), configuration(cc="reno"))
        plan = Plan("tried", configurations, 2, seed=1, limit_s=made.limit_s)
        found = [made.run(run) for run in plan.runs() if run.rep == 1]
        told = made.results.meta["labs"]
    assert [(it["outcome"], it["error"]) for it in found] == [("ok", None)] * 2
    assert [len(it["proxies"]) for it in told.values()] == [1, 1]


@pytest.mark.parametrize(("chosen", "names"), [
    ({}, {"pipes-client-eth0.pcap", "application-client.pcap", "application-server.pcap"}),
    ({"way": "direct"}, {"direct-client-eth0.pcap"}),
])  # fmt: skip
def test_captures_are_kept_when_asked_for(
    tmp_path: Path, chosen: dict[str, Any], names: set[str]
) -> None:
    with runner(tmp_path, download, keep=Keep(pcaps=True, late=True)) as made:
        (record,) = records(made, configuration(**chosen))
    there = {path.name: path.stat().st_size for path in (tmp_path / "tried").glob("*/pcaps/*/*")}
    assert set(there) == names
    assert max(there.values()) > 200_000
    assert record["pcaps"] == f"pcaps/{record['id']}"


def test_a_wrong_byte_is_a_failure(tmp_path: Path) -> None:
    """A server of other contents; what the client compares with is not what comes."""

    def measure(run: LiveRun) -> dict[str, Any]:
        run.kept("traffic", lambda: traffic.server(run.lab))
        scene = {"address": "10.0.9.2", "cc": "cubic", "seed": 1, "seconds": 5.0}
        wrong = {"port": traffic.PORT, "down": 1000, "do": "experiments.workloads.actors.Transfer"}
        code = (
            "import sys, json\n"
            "from experiments.workloads import exchange, play\n"
            "real = exchange.check\n"
            "exchange.check = lambda start, at, data: real(start + 1, at, data)\n"
            "play.play(json.loads(sys.argv[1]))\n"
        )
        words = json.dumps({**scene, "actors": {"file": wrong}})
        argv = [*traffic.command("play")[:-2], "-c", code, words]
        finished = traffic.finished(run, argv, "client", 5.0)
        return {"said": finished}

    with runner(tmp_path, measure) as made:
        (record,) = records(made, configuration(way="direct"))
    assert record["outcome"] == "failed"
    assert "WrongByte" in record["error"], record


def test_when_the_time_is_up_the_block_is_ended(tmp_path: Path) -> None:
    """What is left is no failure, and can be resumed."""
    tried = experiment(lambda run: {"completion_s": 1.0})
    keep = Keep(late=True)
    chosen = tuple(configuration(way="direct", rtt_ms=rtt) for rtt in (10, 20))
    plan = Plan("tried", chosen, reps=3, seed=1, limit_s=20.0)
    results = Results.create(tmp_path, "tried", None, {"plan": plan.as_dict()})
    campaign.run(tried, results, campaign.How(keep, within_s=0.0, calibrate=False))
    assert [record["rep"] for record in results.runs()] == [0, 0]
    campaign.run(tried, results, campaign.How(keep, within_s=0.0, calibrate=False))
    assert [record["rep"] for record in results.runs()] == [0, 0, 1, 1]
    campaign.run(tried, results, campaign.How(keep, calibrate=False))
    assert results.unfinished() == 0
    assert [len(it) for it in results.meta["sessions"]] == [7] * 3


# --- the command ---


def test_a_prompt_in_a_lab(tmp_path: Path) -> None:
    typed = ("client ss -Htn state established dport = :6010", "server sleep 1000 &")
    typed += ("outage reset", "outage off", "")
    prompt = subprocess.run(
        [built("tm3lab"), "up", "lte", "--pipes", "3", "--rtt-ms", "20"],
        input="\n".join(typed),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert prompt.returncode == 0, prompt.stderr
    assert prompt.stderr.count("10.0.1.2:6010") == 3, prompt.stderr
    assert "reset: pipes from port " in prompt.stdout
    assert "one of silent, reset, resets" in prompt.stdout
    assert "wireshark -k -i - -C TM3" in prompt.stdout
    name = prompt.stdout.partition("/run/tm3/")[2].partition("/")[0]
    assert name
    assert not (run_dir() / name).exists()
    mark = f"{MARK}={run_dir() / name}"
    assert not [process for process in everybody() if environment_has(process.pid, mark)]


def test_a_key_says_which_runs_share_a_lab() -> None:
    one = labs.key(configuration())
    assert one == labs.key(configuration(preset="lossy", rtt_ms=80, cc="reno", pipes=4))
    assert one != labs.key(configuration(mtu=1400))
    assert one != labs.key(configuration(bottleneck="sender"))
    assert one != labs.key(configuration(topology="two"))
    assert one != labs.key(configuration(wan_rtt_ms=20))


def test_each_configuration_runs_the_proxies_that_it_names(tmp_path: Path) -> None:
    """Two builds in one run, and the record says which programs they were."""
    other = tmp_path / "other"
    other.mkdir()
    for name in ("rp", "lp"):
        shutil.copy(built(name), other / name)
    with (other / "rp").open("ab") as changed:
        changed.write(b"another build")  # what runs is the same, its digest is not
    ran: dict[Any, list[str]] = {}

    def measure(run: LiveRun) -> dict[str, Any]:
        assert run.pair is not None
        ran[run.params["proxies"]] = [run.pair.rp.argv[0], run.pair.lp.argv[0]]
        return download(run)

    with runner(tmp_path, measure) as made:
        configurations = (configuration(), configuration(proxies=str(other)))
        found = records(made, *configurations)
        labs_told = made.results.meta["labs"]
    assert [it["outcome"] for it in found] == ["ok", "ok"]
    assert ran[None] == [str(built("rp")), str(built("lp"))]
    assert ran[str(other)] == [str(other / "rp"), str(other / "lp")]
    digests = {it["proxies"][0]["rp_sha256"] for it in labs_told.values()}
    assert len(labs_told) == len(digests) == 2
    assert len({it["proxies"][0]["lp_sha256"] for it in labs_told.values()}) == 1
