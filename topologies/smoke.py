# SPDX-License-Identifier: MIT
"""Whether the laboratory works on this machine, in a minute: `python -m topologies.smoke` (root).

The tools; Mininet with Open vSwitch and netem; a download through tm3.ko, lp, netem and rp, byte
for byte. What was found goes to results/smoke/.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from base.shell import CommandError, run
from base.sources import ROOT
from topologies.addresses import SERVER, rp_address
from topologies.lab import Lab
from topologies.programs import program
from topologies.topos import LastMile

TOOLS = ("tshark", "iperf3", "mn", "ovs-vsctl", "curl", "tc", "gcc")
OBJECT_BYTES = 1_000_000
PIPES = 4
DELAY_MS = 10
CONTROL = ROOT / "kmod" / "tm3ctl"


class Failed(RuntimeError):
    pass


def tools(names: tuple[str, ...] = TOOLS) -> None:
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        raise Failed(f"no {', '.join(missing)} here")


def switched_rtt_ms() -> float:
    """Two hosts at an Open vSwitch in the kernel, each behind 10 ms of netem."""
    from mininet.link import TCLink
    from mininet.net import Mininet
    from mininet.node import OVSBridge
    from mininet.topo import SingleSwitchTopo

    # Without it ovs-vsctl, which Mininet calls, would wait for ever.
    run(["ovs-appctl", "--timeout=20", "--target=ovs-vswitchd", "version"])
    net = Mininet(topo=SingleSwitchTopo(2), switch=OVSBridge, link=TCLink, controller=None)
    try:
        for link in net.links:
            link.intf1.config(delay=f"{DELAY_MS}ms")
        net.start()
        one, two = net.hosts
        said = one.cmd("ping", "-c", "5", "-i", "0.2", two.IP())
    finally:
        net.stop()
    times = sorted(float(ms) for ms in re.findall(r"time=([\d.]+) ms", said))
    if len(times) < 3:
        raise Failed(f"Open vSwitch: no answer over it: {said.strip()[-300:]}")
    if times[0] < 2 * DELAY_MS:
        raise Failed(f"netem: {times[0]} ms, where {2 * DELAY_MS} were to be added")
    return times[0]


def download(folder: Path) -> dict[str, Any]:
    """An unmodified curl, through the module and the pipes; how long, and what the module saw."""
    served = folder / "served"
    served.mkdir()
    payload = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(OBJECT_BYTES // 32))
    (served / "object").write_bytes(payload)
    web = [sys.executable, "-u", "-m", "http.server", "80", "--directory", str(served)]
    with Lab(LastMile("wired", link="netem"), logs=folder) as lab:
        with program(lab.state, "server", "web", web), lab.proxies(PIPES):
            lab.server.inside("sh", "-c", "until ss -Htln | grep -q ':80 '; do sleep 0.1; done")
            with_module = ("--with", "module", rp_address(), "client-eth0", "80")
            lab.client.inside(CONTROL, *with_module)
            begun = time.monotonic()
            got = folder / "got"
            lab.client.inside("curl", "-sf", "-o", got, f"http://{SERVER}/object")
            took = time.monotonic() - begun
            status = lab.client.inside(CONTROL, "status")
            lab.client.inside(CONTROL, "off")
        choice = lab.topo.choice.realisation
    if got.read_bytes() != payload:
        raise Failed("the download is not what was served")
    if not re.search(r"^redirected [1-9]", status, re.MULTILINE):
        raise Failed(f"tm3.ko redirected nothing: {status}")
    return {"link": choice, "pipes": PIPES, "bytes": len(payload), "seconds": round(took, 2)}


def main() -> int:
    results = ROOT / "results" / "smoke"
    try:
        tools()
        found: dict[str, Any] = {"kernel": run(["uname", "-r"]).strip()}
        found["switch_rtt_ms"] = switched_rtt_ms()
        with TemporaryDirectory(prefix="tm3-smoke-") as folder:
            found["download"] = download(Path(folder))
    except (Failed, CommandError, RuntimeError, OSError, subprocess.SubprocessError) as why:
        print(f"smoke: {why}", file=sys.stderr)
        return 1
    results.mkdir(parents=True, exist_ok=True)
    (results / "smoke.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"smoke: it works: {json.dumps(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
