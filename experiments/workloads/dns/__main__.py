# SPDX-License-Identifier: MIT
"""Asks a DNS server at a steady pace and tells how long the answers take, as JSON.

python -m experiments.workloads.dns ADDRESS [OPTION]...
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from experiments import parameters
from experiments.workloads import line
from experiments.workloads.dns import distribution
from experiments.workloads.dns.client import Client
from experiments.workloads.dns.failure import BadInput, Unanswered, WrongAnswer
from experiments.workloads.dns.kinds import KINDS
from experiments.workloads.dns.stubs import STUBS
from topologies.parameter import Parameter, ParameterError

EPILOG = f"""\
The server has to know q0.tm3.test to q255.tm3.test as 192.0.2.0 to 192.0.2.255, as unbound does
with the configuration of this package. Stubs: {", ".join(STUBS)}.
"""
_NUMBERS = (
    Parameter("port", 0, "whole", "of the server; default: 53, by TLS 853", high=65_535),
    Parameter("queries", 1000, "whole", "in all", low=1),
    Parameter("every_ms", 50.0, "number", "between two queries, or bursts", low=0.001),
    Parameter("burst", 1, "whole", "queries back to back", low=1),
    Parameter("limit_s", 60.0, "number", "for what connections owe after the last query", low=0),
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m experiments.workloads.dns",
        description="DNS queries at a steady pace over UDP, TCP or TLS; times as JSON.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("address", metavar="ADDRESS", help="of the server")
    made.add_argument("--kind", default="udp", metavar="KIND", help=f"{', '.join(KINDS)} (udp)")
    made.add_argument("--stub", default="fixed", metavar="STUB", help="of udp (fixed)")
    made.add_argument("--authority", metavar="FILE", help="of tls: the server's certificate")
    for it in _NUMBERS:
        made.add_argument(
            f"--{it.name.replace('_', '-')}", metavar="N", help=f"{it.help} ({it.default})"
        )
    made.add_argument("--ccdf", metavar="FILE", help="write time and share that takes longer to it")
    made.add_argument("--line", metavar="FOLDER", help="wait at the start line there")
    return made


def client_of(given: argparse.Namespace) -> Client:
    """Raises BadInput or ParameterError."""
    told: dict[str, Any] = {}
    for it in _NUMBERS:
        text = getattr(given, it.name)
        told[it.name] = it.default if text is None else parameters.read(it, text)
    return Client(
        address=given.address,
        kind=given.kind,
        stub=given.stub,
        authority=given.authority,
        every_s=told.pop("every_ms") / 1e3,
        **told,
    )


def summary(found: dict[str, Any]) -> dict[str, Any]:
    answered = [it for it in found["took_s"] if it is not None]
    unanswered = len(found["took_s"]) - len(answered)
    level = distribution.plateaus(answered, unanswered) if answered else []
    return found | {
        "unanswered": unanswered,
        "plateaus": [{"share": it.share, "from_s": it.from_s, "to_s": it.to_s} for it in level],
    }


def written(path: Path, found: dict[str, Any]) -> None:
    """Two columns: seconds, and the share of queries that takes longer."""
    answered = [it for it in found["took_s"] if it is not None]
    curve = distribution.ccdf(answered, found["unanswered"]) if answered else []
    path.write_text("".join(f"{at:.6f} {share:.8f}\n" for at, share in curve))


def fail(text: str, status: int) -> None:
    print(f"dns: {text}", file=sys.stderr, flush=True)
    sys.exit(status)


def main() -> None:
    given = parser().parse_args()
    try:
        client = client_of(given)
    except (BadInput, ParameterError) as error:
        fail(str(error), 2)
    if given.line:
        line.wait(Path(given.line))
    try:
        found = summary(asyncio.run(client.run()))
    except (WrongAnswer, Unanswered, OSError) as error:
        fail(str(error), 1)
    if given.ccdf:
        written(Path(given.ccdf), found)
    if given.line:
        line.done(Path(given.line))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
