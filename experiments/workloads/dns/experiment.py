# SPDX-License-Identifier: MIT
"""DNS in a run: the server kept up, a client program for each run, losses matched to queries."""

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.shell import enter, until
from experiments.failure import RunFailed
from experiments.labs import account
from experiments.workloads import certificate, rates, traffic
from experiments.workloads.dns import losses, nodelay, unbound
from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.programs import program

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

MILE = "mile"
PROMPT = 1.5  # medians: what takes no longer met no loss
BLOCKED_S = (0.04, 0.06)  # published of answers that waited for the one before
WRITTEN_S = 5.0  # linkem writes its drops every second


@contextmanager
def server(lab: Lab) -> Iterator[Path]:
    """Ready, while the block runs; its certificate."""
    with tempfile.TemporaryDirectory(prefix="tm3-dns-") as name:
        folder = Path(name)
        shown = folder / "certificate.pem"
        certificate.make(shown, folder / "key.pem", [unbound.NAME])
        argv = unbound.command(folder, SERVER)
        with program(lab.state, "server", "unbound", argv, ready=unbound.READY) as running:
            nodelay.set_on(running.pid, unbound.PROMPT_PORT)
            yield shown


def kept(run: "LiveRun") -> Path:
    """The server, up as long as the lab; its certificate."""
    return run.kept("dns", lambda: server(run.lab))


def ask(
    run: "LiveRun",
    *,
    kind: str,
    stub: str,
    queries: int,
    every_ms: float,
    burst: int,
    nagle: bool,
    address: str = SERVER,
) -> Any:
    """What the client found, and under `drops` what the last mile dropped meanwhile, where that is
    told. What the client says when it ends by itself is told as RunFailed."""
    authority = kept(run)
    left_s = max(0.1, run.deadline - time.monotonic())
    words = [address, "--kind", kind, "--queries", str(queries), "--burst", str(burst)]
    words += ["--every-ms", f"{every_ms:g}", "--limit-s", f"{left_s:.0f}"]
    words += ["--stub", stub] if kind == "udp" else []
    words += ["--port", str(unbound.PROMPT_PORT)] if kind in ("tcp", "fresh") and not nagle else []
    words += ["--authority", str(authority)] if kind == "tls" else []
    run.begin()  # what is dropped from here on is of the draw of this run
    before = _dropped(run.lab)
    with tempfile.TemporaryDirectory(dir=run.folder, prefix="line-") as folder:
        command = traffic.command("dns", *words, "--line", folder, packages=True)
        argv = enter(run.lab.client.namespace, command)
        with traffic.running(run, argv, "dns", left_s, Path(folder)) as client:
            found = json.loads(client.result())
    return found | {"drops": _drops(run.lab, before)}


def _file(lab: Lab) -> Path | None:
    """Only linkem tells of its drops, and only in a lab that asks for it."""
    return getattr(lab.links.get(MILE), "drops", None)


def _dropped(lab: Lab) -> int:
    """Packets, both ways, since the link was made."""
    counted = account(lab)
    ways = [counted.get(f"{MILE} {way}", {}) for way in ("up", "down")]
    return sum(it.get("lost_packets", 0) + it.get("dropped_queue_packets", 0) for it in ways)


def _drops(lab: Lab, before: int) -> list[losses.Drop] | None:
    """Those behind the first so many: linkem writes them in order, and a little later."""
    path = _file(lab)
    if path is None:
        return None
    owed = _dropped(lab)
    until(f"{owed} drops in {path}", lambda: len(losses.read(path)) >= owed, WRITTEN_S)
    return losses.read(path)[before:owed]


def checked(found: dict[str, Any]) -> dict[str, Any]:
    """How many packets were lost; of UDP each is matched to the query that paid for it. Raises
    RunFailed where that query was not asked again just as often."""
    drops = found["drops"]
    if drops is None:
        return {}
    counts = {f"lost_{way}": sum(it.way == way for it in drops) for way in ("up", "down")}
    if found["kind"] == "udp":
        paid, others = losses.paid(found["sent"], drops)
        wrong = losses.unexplained(found["tries"], found["took_s"], paid)
        if wrong or others:
            raise RunFailed(wrong or f"{len(others)} packets were lost that were no query's")
        counts["matched"] = len(paid)
    return counts


def measures_of(found: dict[str, Any], every_ms: float) -> dict[str, Any]:
    """A query that was given up is in every share, and in no time."""
    took = [it for it in found["took_s"] if it is not None]
    if not took:
        raise RunFailed("no query was answered")
    p50 = rates.quantile(took, 0.5)
    every = len(found["took_s"])
    low, high = BLOCKED_S
    return {
        "completion_s": p50,
        "answer_p50_ms": p50 * 1e3,
        "answer_p97_ms": rates.quantile(took, 0.97) * 1e3,
        "answer_p99_ms": rates.quantile(took, 0.99) * 1e3,
        "answer_p999_ms": rates.quantile(took, 0.999) * 1e3,
        "prompt_share": sum(it <= PROMPT * p50 for it in took) / every,
        "blocked_share": sum(low <= it <= high for it in took) / every,
        "repaired_share": 1 - sum(it <= every_ms / 1e3 for it in took) / every,
        "unanswered": found["unanswered"],
        "answers_s": [round(it, 5) for it in took],
    }
