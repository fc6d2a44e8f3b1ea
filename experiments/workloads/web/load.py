# SPDX-License-Identifier: MIT
"""One page load in a run: by our loader or by Chromium, by HTTP/1.1 or HTTP/2.

Cleartext unless `tls`: then HTTP/1.1 and HTTP/2 differ in nothing but themselves, and TLS'
handshake, which needs its round trip whatever the way, does not thin the differences out.
Chromium speaks HTTP/2 only under TLS. The congestion control of the server's sockets, which send
the page, is read back from the kernel while they are open, and with it what they had to send again.
"""

import itertools
import json
import re
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.shell import enter
from base.sources import ROOT
from experiments import machine
from experiments.failure import RunFailed
from experiments.preflight import CannotServe
from experiments.workloads import line, mptcp
from experiments.workloads.web.hints import FIRST_PORTS
from experiments.workloads.web.pages import NAMES, page
from experiments.workloads.web.site import NETWORK, PORTS, Site, addresses, site
from topologies.parameter import Parameter, Params
from topologies.proxies import CONTROL

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

MODULE = {"loader": "loader", "chromium": "chromium"}
SIZES = Parameter(
    "sizes",
    "none",
    "text",
    "how rp knows how large answers are: not at all, from Content-Length in their heads, or by "
    "hints of the loader, which tells lp how urgent they are, too",
    ("none", "http", "hints"),
    needs=(("way", "pipes"),),
)
PARAMETERS = (
    Parameter("page", "site-15", "text", "what is loaded", NAMES),
    Parameter("protocol", "http1", "text", "HTTP/1.1 or HTTP/2", ("http1", "http2")),
    Parameter(
        "http2_per",
        "page",
        "text",
        "HTTP/2: a connection for the page's hosts together, as through a SPDY proxy, or for each",
        ("page", "host"),
    ),
    Parameter("tls", False, "truth", "whether HTTP lies in TLS 1.3"),
    Parameter("browser", "loader", "text", "who loads the page", tuple(MODULE)),
)


@dataclass(frozen=True)
class Plan:
    """What the parameters of a run ask for."""

    page: str
    protocol: str
    one: bool
    tls: bool
    browser: str
    mptcp: bool
    hints: bool = False

    @classmethod
    def of(cls, params: Params, **fixed: Any) -> "Plan":
        """Of a run's parameters; `fixed` for those that an experiment has not."""
        asked = {it.name: fixed.get(it.name, params.get(it.name, it.default)) for it in PARAMETERS}
        if params["way"] == "http2":
            asked["protocol"] = "http2"
        plan = cls(
            page=str(asked["page"]),
            protocol=str(asked["protocol"]),
            one=asked["protocol"] == "http2" and asked["http2_per"] == "page",
            tls=bool(asked["tls"]),
            browser=str(asked["browser"]),
            mptcp=params["way"] == "mptcp",
            hints=params.get(SIZES.name) == "hints",
        )
        if plan.browser == "chromium" and plan.protocol == "http2" and not plan.tls:
            raise RunFailed("Chromium speaks HTTP/2 only under TLS: --tls yes")
        if plan.mptcp and (plan.tls or plan.browser == "chromium"):
            raise RunFailed("MPTCP is for the loader, and without TLS")
        if plan.hints and (plan.browser == "chromium" or plan.protocol == "http2"):
            raise RunFailed("hints are for the loader, and by HTTP/1.1: one answer a connection")
        return plan

    def command(
        self, it: Site, hosts: Path, line_at: Path, seconds: float, cc: str
    ) -> list[str | Path]:
        words: list[str | Path] = [sys.executable, "-m", __package__ + "." + MODULE[self.browser]]
        words += ["--manifest", it.manifest(self.page), "--hosts", hosts, "--line", line_at]
        words += ["--protocol", self.protocol, "--seconds", f"{seconds:.1f}"]
        if self.browser == "chromium":
            return [*words, *(["--keys", it.key_digest()] if self.tls else [])]
        port = it.mptcp[self.protocol, cc] if self.mptcp else PORTS[self.protocol, self.tls]
        words += ["--port", str(port), "--cc", cc, *(["--mptcp"] if self.mptcp else [])]
        words += ["--authority", it.certificate] if self.tls else []
        return [*words, *(["--one"] if self.one else [])]


def load(run: "LiveRun", plan: Plan) -> dict[str, Any]:
    """Loads the page; the times, and the server's account of its connections. Raises RunFailed."""
    it = run.kept("web", lambda: site(run.lab))
    if plan.mptcp:
        if not it.mptcp:
            raise CannotServe("this kernel has no MPTCP")
        run.kept("mptcp", lambda: mptcp.subflows(run.lab))
    seconds = run.deadline - time.monotonic()
    hosts = run.folder / "hosts.json"
    hosts.write_text(json.dumps(addresses(page(plan.page), plan.one)))
    line_at = run.folder / f"line-{plan.browser}"
    line_at.mkdir()
    words = plan.command(it, hosts, line_at, max(0.1, seconds), str(run.params["cc"]))
    if plan.hints:
        assert run.pair is not None and run.pair.control is not None, "lp has no control socket"
        ports = run.kept("ports", lambda: nullcontext(itertools.cycle(FIRST_PORTS)))
        words += ["--hints", run.pair.control, "--first-port", str(next(ports))]
    argv = enter(run.lab.client.namespace, words)
    with (run.folder / f"{plan.browser}.log").open("w+") as said:
        with subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            cwd=ROOT,
            env=run.lab.state.environment(),
        ) as process:
            try:
                run.went = line.start(line_at, process, run.begin)
                found, sockets = _talk(run, process, said.name)
            finally:
                _end(process)
                shutil.rmtree(line_at)
    (run.folder / "objects.json").write_text(json.dumps(found, indent=1))
    if plan.mptcp and sockets["open"] <= len(found["connections"]):
        raise RunFailed(f"{sockets['open']} subflows of {len(found['connections'])} connections")
    if plan.browser == "loader":  # Chromium's many processes are not counted
        run.void(machine.too_slow("loader", found["cpu_s"], found["load_s"]))
    return _measures(plan, found, sockets)


def _talk(
    run: "LiveRun", process: "subprocess.Popen[str]", log: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Its one line; the server's sockets, while it waits; its end."""
    assert process.stdin is not None and process.stdout is not None
    line = process.stdout.readline()  # it keeps to the deadline by itself
    if not line:
        status = process.wait(timeout=10)
        lines = Path(log).read_text(errors="replace").strip().splitlines() or ["no word"]
        raise RunFailed(f"exit {status}: {lines[-1]}")
    sockets = server_sockets(run)
    process.stdin.close()
    status = process.wait(timeout=20)
    if status:
        raise RunFailed(f"exit {status} after the page was loaded")
    return json.loads(line), sockets


def _end(process: "subprocess.Popen[str]") -> None:
    """Asks first: a browser has more processes, and a folder."""
    assert process.stdin is not None
    process.stdin.close()
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()


def server_sockets(run: "LiveRun") -> dict[str, Any]:
    """What the kernel tells of the server's ends; all must be under what was asked for."""
    words = ("ss", "-Htin", "state", "established", f"( src {NETWORK}.0/24 )")
    lines = run.lab.server.inside(*words).splitlines()
    found = [CONTROL.match(line) for line in lines[1::2]]
    controls = {match[1] if match else "?" for match in found}
    if controls != {run.params["cc"]}:
        raise RunFailed(f"the server's connections are under {sorted(controls)}")
    again = [int(count) for count in re.findall(r"retrans:\d+/(\d+)", "".join(lines[1::2]))]
    return {"open": len(found), "retransmits": sum(again)}


def _measures(plan: Plan, found: dict[str, Any], sockets: dict[str, Any]) -> dict[str, Any]:
    return {
        "completion_s": found["load_s"],
        "first_byte_s": found["first_byte_s"],
        "html_s": found["html_s"],
        "bytes": found["bytes"],
        "requests": len(found["objects"]),
        "connections": len(found["connections"]),
        "server_sockets": sockets["open"],
        "server_retransmits": sockets["retransmits"],
        **({"hints": found["hints"]} if plan.hints else {}),
        **{f"page_{name}": value for name, value in page(plan.page).summary().items()},
    }
