# SPDX-License-Identifier: MIT
"""rp and lp of build/faults, whose calls can be made to fail: see tests/faults/README.md."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.relay.programs import BUILD

# What a kind of call may fail with; all that need memory have but one.
ERRORS = {
    "memory": ("ENOMEM",),
    "socket": ("EMFILE", "ENFILE"),
    "accept": ("EMFILE", "ECONNABORTED"),
    "file": ("EMFILE",),
    "epoll": ("ENOSPC",),
    "wait": ("EINTR",),
    "thread": ("EAGAIN",),
    "send": ("ENOBUFS",),
    "sctp-set": ("ENOMEM",),
    "sctp-get": ("EINVAL",),
    "sctp-send": ("ENOBUFS", "EPIPE"),
}


@dataclass(frozen=True)
class Place:
    """Where a call comes from: its name in each run, and addresses in the program."""

    kind: str
    name: str
    addresses: tuple[str, ...]


def faulty(name: str) -> Path:
    path = BUILD / "faults" / name
    assert path.exists(), f"{path} is not built: make test-programs"
    return path


def places(report: Path) -> list[Place]:
    """All from which calls came, by a program's report."""
    words = [line.split() for line in report.read_text().splitlines()]
    return [Place(kind, name, tuple(at)) for kind, name, *at in words if kind != "failed"]


def happened(report: Path, place: Place) -> bool:
    return f"failed {place.kind} {place.name}\n" in report.read_text()


def described(program: str, found: Sequence[Place]) -> dict[Place, str]:
    """Function, file and line of each place, and of what calls it."""
    addresses = sorted({address for place in found for address in place.addresses})
    done = subprocess.run(
        ["addr2line", "-sfe", faulty(program), *addresses],
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout.splitlines()
    at = dict(zip(addresses, zip(said[::2], said[1::2], strict=True), strict=True))
    return {
        place: " < ".join(f"{at[it][0]} {at[it][1].split(' ')[0]}" for it in place.addresses)
        for place in found
    }
