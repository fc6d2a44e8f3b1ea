# SPDX-License-Identifier: MIT
"""What a folder says of itself: the plan, and for each session who ran it on which machine.

What was in force inside the labs (sysctls, links, congestion controls) is added by the runner, read
back while it is in force.
"""

import importlib.metadata
import os
import socket
import time
from typing import Any

from base import called
from experiments.model import Experiment
from experiments.plan import Plan
from topologies import record

_LIBRARIES = ("numpy", "scipy", "matplotlib", "rich", "aioquic")


def _library(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def session(command: list[str]) -> dict[str, Any]:
    """One call of the command; resuming adds another."""
    return {
        "started": round(time.time(), 3),
        "ended": None,
        "command": command,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "machine": record.machine(),
        "versions": record.versions() | {name: _library(name) for name in _LIBRARIES},
    }


def command_line() -> list[str]:
    return ["tm3lab", *called.words()[1:]]


def of(experiment: Experiment, plan: Plan, first: dict[str, Any]) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "commit": first["versions"]["commit"],
        "command": first["command"],
        "plan": plan.as_dict(),
        "sessions": [first],
        "labs": {},
    }
