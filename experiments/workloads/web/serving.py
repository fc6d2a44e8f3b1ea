# SPDX-License-Identifier: MIT
"""An nginx in a node of a lab: ready, and ended with its block."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.shell import until
from experiments.workloads.traffic import command
from topologies.lab import Lab
from topologies.programs import ProgramError, program

STARTS_S = 60.0  # in an emulated guest it takes more than ten
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def temporary(folder: Path) -> str:
    """Of a configuration: nginx makes these folders when it starts."""
    return "\n\t".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY)


@contextmanager
def serving(lab: Lab, node: str, name: str, folder: Path, *ports: str) -> Iterator[None]:
    """By `folder`'s nginx.conf, which has its number written to nginx.pid and its errors to
    error.log beside it. `ports`: as nginx.py has them."""
    argv = command("web.nginx", str(folder), *ports)
    with program(lab.state, node, name, argv) as nginx:

        def ready() -> bool:
            if not nginx.running():
                raise ProgramError(f"nginx ended: {nginx.log}{_text(folder / 'error.log')}")
            return bool(_text(folder / "nginx.pid"))

        until("nginx to write down its number", ready, STARTS_S)
        yield


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
