# SPDX-License-Identifier: MIT
"""Settings of the kernel for a run, in the lab's own namespaces alone, and as before after it."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from experiments.failure import RunFailed
from topologies.lab import Lab
from topologies.nodes import LabNode, read_sysctls, set_sysctls

Settings = Mapping[str, str]


@contextmanager
def settings(lab: Lab, wanted: Settings) -> Iterator[Settings]:
    """Each was read back in the client, rp's host and each server. Raises RunFailed where this
    kernel has no such setting, CommandError or SettingRefused where it does not take a value."""
    with ExitStack() as stack:
        for node in (lab.client, lab.rp, *lab.servers) if wanted else ():
            stack.enter_context(_of_node(node, wanted))
        yield wanted


@contextmanager
def _of_node(node: LabNode, wanted: Settings) -> Iterator[None]:
    before: dict[str, str] = {}
    for key, value in read_sysctls(node.namespace, list(wanted)).items():
        if value is None:
            raise RunFailed(f"{node.name}: this kernel has no setting {key}")
        before[key] = value
    try:
        set_sysctls(node.namespace, wanted)
        yield
    finally:
        set_sysctls(node.namespace, before)
