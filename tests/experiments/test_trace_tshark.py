# SPDX-License-Identifier: MIT
"""The trace analyser's flows are tshark's conversations: packets and bytes of each, either way."""

import re
import shutil
import subprocess
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

import pytest

from base.sources import ROOT
from experiments.trace.bursts import DOWN, UP
from experiments.trace.capture import Capture
from experiments.trace.flow import Flow
from experiments.trace.packet import ports
from experiments.trace.trace import Trace
from tests.experiments.captures import CLIENT6, SERVER6, Connection, pcapng

SAMPLES = sorted((ROOT / "dissector" / "samples").glob("*.pcap"))
# A:port <-> B:port, then packets and bytes to A, and to B
ROW = re.compile(r"^(\S+):(\d+) +<-> (\S+):(\d+) +(\d+) (\d+) (\w+) +(\d+) (\d+) (\w+) ")
UNITS = {"bytes": 1, "kB": 1000, "MB": 10**6}
End = tuple[str, int]
Way = tuple[End, End]  # from, to


def tshark(path: Path, *words: str) -> str:
    if not shutil.which("tshark"):
        pytest.skip("no tshark: make setup")
    done = subprocess.run(
        ["tshark", "-n", "-r", path, *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def flows_of(path: Path) -> list[Flow]:
    trace = Trace()
    trace.read(Capture(path))
    return list(trace.flows())


def ways(flow: Flow) -> dict[Way, int]:
    half = len(flow.ends) // 2 - 2
    source, destination = ports(flow.ends)
    client = (str(ip_address(flow.ends[:half])), source)
    server = (str(ip_address(flow.ends[half : 2 * half])), destination)
    return {(client, server): UP, (server, client): DOWN}


@pytest.fixture(params=[*SAMPLES, None], ids=lambda it: it.stem if it else "ipv6")
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The dissector's samples, which are real traffic, and one by hand: IPv6, a port used twice."""
    if request.param:
        return request.param
    first = Connection(client=CLIENT6, server=SERVER6)
    second = Connection(client=CLIENT6, server=SERVER6, up=5000, down=6000)
    frames = [*first.opened(0), first.send(1, 300), first.get(2, 4000), first.send(2.1, 0)]
    frames += [*second.opened(80), second.get(81, 900), second.send(81, 0)]
    path = tmp_path / "ipv6.pcapng"
    path.write_bytes(pcapng(frames))
    return path


def test_totals_are_those_of_its_conversations(capture: Path) -> None:
    told = [ROW.match(line) for line in tshark(capture, "-q", "-z", "conv,tcp").splitlines()]
    rows = [it.groups() for it in told if it]
    flows = flows_of(capture)
    assert len(rows) == len(flows) > 0
    theirs: Counter[object] = Counter()
    units: dict[tuple[Way, str], set[int]] = {}
    for a, a_port, b, b_port, *numbers in rows:
        one, other = (a, int(a_port)), (b, int(b_port))
        for way, (packets, size, unit) in (
            ((other, one), numbers[:3]),
            ((one, other), numbers[3:]),
        ):
            theirs[way, int(packets), int(size), UNITS[unit]] += 1
            units.setdefault((way, packets), set()).add(UNITS[unit])
    ours: Counter[object] = Counter()
    for flow in flows:
        for way, k in ways(flow).items():
            # tshark writes 10 kB of 10689 bytes.
            (unit,) = units.get((way, str(flow.packets[k])), {0})
            ours[way, flow.packets[k], flow.wire[k] // max(1, unit), unit] += 1
    assert ours == theirs


def test_bytes_are_those_of_its_packets(capture: Path) -> None:
    """To the byte, what conversations round: frames and TCP payload."""
    fields = ("ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport")
    words = [word for it in (*fields, "frame.len", "tcp.len") for word in ("-e", it)]
    theirs: Counter[tuple[Way, str]] = Counter()
    for line in tshark(capture, "-Y", "tcp", "-T", "fields", *words).splitlines():
        source4, source6, sport, to4, to6, dport, length, payload = line.split("\t")
        way = ((source4 or source6, int(sport)), (to4 or to6, int(dport)))
        theirs[way, "wire"] += int(length)
        theirs[way, "payload"] += int(payload)
    ours: Counter[tuple[Way, str]] = Counter()
    for flow in flows_of(capture):
        for way, k in ways(flow).items():
            ours[way, "wire"] += flow.wire[k]
            ours[way, "payload"] += flow.payload[k]
    assert ours == theirs
