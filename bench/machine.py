# SPDX-License-Identifier: MIT
"""Facts about the machine, without which no figure means much."""

import os
import platform
from pathlib import Path

from bench import namespace


def cpu_model(cpuinfo: str) -> str:
    for line in cpuinfo.splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def memory_mib(meminfo: str) -> int:
    for line in meminfo.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    return 0


def two_cores() -> tuple[int, int]:
    """The first two that we may use; all that we start is held to them."""
    allowed = sorted(os.sched_getaffinity(0))
    cores = (allowed[0], allowed[min(1, len(allowed) - 1)])
    os.sched_setaffinity(0, set(cores))
    return cores


def facts(cores: tuple[int, int]) -> dict[str, object]:
    return {
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "processors": os.cpu_count(),
        "processors_used": sorted(set(cores)),
        "memory_mib": memory_mib(Path("/proc/meminfo").read_text()),
        "kernel": platform.release(),
        "descriptors": namespace.descriptors(),
        "load_average_before": os.getloadavg(),
    }
