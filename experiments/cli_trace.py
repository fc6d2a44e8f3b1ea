# SPDX-License-Identifier: MIT
"""tm3lab trace: what a capture tells of the traffic in it."""

import argparse
import ipaddress
import json
from pathlib import Path
from typing import Any

from experiments.trace.capture import Capture, CaptureError
from topologies.addresses import RP_PORT, RP_PORT_EXTENDED

DESCRIPTION = """\
Sessions (60 s without a packet end one), bursts (1 s without a packet of the
flow, or data the other way), rates of flows whose bursts last over 3 s, how
many flows carry data in a second, round trips, and by how much they grow in
the seconds in which under 5 KB come down.

FILE is pcap or pcapng, of a client: tcpdump -s 96 -w FILE. Each is taken as of
one client, and of a time of its own. experiments/trace/README.md has the rules.
"""


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "trace",
        help="sessions, bursts, rates, concurrency, round trips of captures",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="pcap or pcapng")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where all figures are written")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="where curves are drawn")
    parser.add_argument(
        "--client",
        type=_network,
        action="append",
        default=[],
        metavar="ADDRESS",
        help="of the client, or its network (10.0.1.0/24), any number of times; else who sends "
        "the first SYN, and of flows begun before the capture the end with the larger port",
    )
    parser.add_argument(
        "--pipe-ports",
        type=_ports,
        default=(RP_PORT, RP_PORT_EXTENDED),
        metavar="PORT,...",
        help=f"of rp: flows to them are told apart as pipes ({RP_PORT},{RP_PORT_EXTENDED})",
    )
    parser.add_argument(
        "--cut-short", action="store_true", help="take what is there of a file that ends too early"
    )
    parser.set_defaults(do=_trace)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no address and no network") from None


def _ports(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(it.isascii() and it.isdigit() and 0 < int(it) < 65536 for it in words):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of ports, say 6000,6010")
    return tuple(map(int, words))


def _trace(given: argparse.Namespace) -> int:
    from experiments.trace import told
    from experiments.trace.findings import findings
    from experiments.trace.flow import Ends
    from experiments.trace.trace import Trace
    from experiments.trace.watch import Watch

    read = []
    for path in given.files:
        capture = Capture(path, cut_short=given.cut_short)
        trace = Trace(Ends(tuple(given.client), given.pipe_ports))
        watch = Watch(capture)
        try:
            trace.read(capture, watch)
        finally:
            watch.end()
        read.append((capture, trace))
    found = findings([trace for _, trace in read])
    print(told.text(read, found))
    try:
        if given.json:
            given.json.write_text(json.dumps(told.data(read, found), indent=1) + "\n")
        if given.plots:
            from experiments.trace import pictures

            for path in pictures.draw(found, given.plots):
                print(path)
    except OSError as why:
        raise CaptureError(f"{why.filename}: {why.strerror}") from None
    return 0
