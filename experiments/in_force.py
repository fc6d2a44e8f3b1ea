# SPDX-License-Identifier: MIT
"""What was in force when a folder's runs were made: what of it is set again, what differs now.

The plan has the links, seeds and parameters. The rest of what decides how TCP behaves is the
machine's: meta.json has it as it was read back in each lab. What a network namespace can be told is
told to the labs of the new folder; what is the kernel's or the machine's alone is said.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from experiments.folder import FolderError, Results
from experiments.report.words import listed
from topologies.nodes import SYSCTLS

# Of what a record tells (topologies/nodes.py), what each namespace has for itself.
SETTABLE = (
    *SYSCTLS,
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
)
OF_MACHINE = ("net.core.default_qdisc", "net.core.rmem_max", "net.core.wmem_max")
VERSIONS = ("commit", "rp", "lp", "linkem", "mininet", "iproute2")
Meta = Mapping[str, Any]


def _nodes(meta: Meta) -> Iterator[Mapping[str, Any]]:
    labs = meta.get("labs")
    for lab in labs.values() if isinstance(labs, dict) else ():
        nodes = lab.get("nodes") if isinstance(lab, dict) else None
        for node in nodes.values() if isinstance(nodes, dict) else ():
            if isinstance(node, dict) and isinstance(node.get("sysctls"), dict):
                yield node["sysctls"]


def sysctls(results: Results) -> dict[str, str]:
    """To be set in the labs of another folder. Raises FolderError."""
    found: dict[str, set[str | None]] = {}
    for told in _nodes(results.meta):
        for key in SETTABLE:
            found.setdefault(key, set()).add(told.get(key))
    if not found:
        raise FolderError(f"{results.path}: meta.json does not tell what was in force in its labs")
    mixed = [key for key, values in found.items() if len(values) > 1]
    if mixed:
        raise FolderError(
            f"{results.path}: {listed(mixed)} differed between its labs or hosts, which cannot be "
            "set again"
        )
    alike = {key: next(iter(values)) for key, values in found.items()}
    return {key: value for key, value in alike.items() if value is not None}


def differs(before: Meta, now: Meta) -> list[str]:
    """What this machine has otherwise than the one before, one line each."""
    was, there = _of_session(before), _of_session(now)
    told = [
        f"{name} was {was[name]}, is {there[name]}"
        for name in was
        if name in there and was[name] != there[name] and was[name] is not None
    ]
    return [*told, *_of_labs(before, now)]


def _of_session(meta: Meta) -> dict[str, Any]:
    """Of the last call that did runs."""
    sessions = meta.get("sessions")
    last = sessions[-1] if isinstance(sessions, list) and sessions else {}
    machine, versions = (last.get(name) or {} for name in ("machine", "versions"))
    of_machine = {name: machine.get(name) for name in ("kernel", "cpu", "cores")}
    return {**{name: versions.get(name) for name in VERSIONS}, **of_machine}


def _of_labs(before: Meta, now: Meta) -> Iterator[str]:
    """What the machine decides; as soon as a lab has been."""
    for key in (*SETTABLE, *OF_MACHINE):
        was, there = ({str(told.get(key)) for told in _nodes(it)} for it in (before, now))
        if was and there and was != there:
            yield f"{key} was {listed(sorted(was))}, is {listed(sorted(there))}"
