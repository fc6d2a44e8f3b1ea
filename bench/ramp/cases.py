# SPDX-License-Identifier: MIT
"""What is measured: how queries go, through what, and over how many connections."""

from collections.abc import Sequence
from dataclasses import dataclass

KINDS = ("udp", "tcp", "tls")
BARE = "bare"
DIRECT = "direct"
PIPES = ("1", "4", "16")
WAYS = (BARE, DIRECT, *PIPES)
CONNECTIONS = (100, 1_000, 10_000)
FLOWS = 1_000  # a session of the extension has 1,024 at most
CLIENTS = 512  # of one `lp --forward udp:`


@dataclass(frozen=True)
class Case:
    """`way`: straight to a server that only answers, straight to unbound, or to unbound over so
    many pipes."""

    kind: str
    way: str
    connections: int

    def __str__(self) -> str:
        return f"{self.kind}, {TITLES[self.way]}, {self.connections:,} connections"

    @property
    def pipes(self) -> int:
        return int(self.way) if self.way in PIPES else 0

    @property
    def ports(self) -> int:
        """That lp takes the clients at."""
        udp = self.kind == "udp" and self.pipes
        return -(-self.connections // CLIENTS) if udp else 1


TITLES = {
    BARE: "a server that only answers",
    DIRECT: "unbound",
    "1": "unbound over 1 pipe",
    "4": "unbound over 4 pipes",
    "16": "unbound over 16 pipes",
}


def why_not(case: Case) -> str | None:
    """Why there is no such case; None if there is."""
    if case.way == BARE and case.kind == "tls":
        return "the server that only answers does not speak TLS"
    if case.kind == "udp" and case.pipes and case.connections > FLOWS:
        return f"a session has 1,024 flows of datagrams at most, so {FLOWS:,} clients"
    return None


def every(
    kinds: Sequence[str], ways: Sequence[str], connections: Sequence[int]
) -> tuple[list[Case], dict[str, str]]:
    """Those that there are, and why the others are not there."""
    cases, missing = [], {}
    for case in (Case(k, w, c) for k in kinds for w in ways for c in connections):
        why = why_not(case)
        if why:
            missing[str(case)] = why
        else:
            cases.append(case)
    return cases, missing
