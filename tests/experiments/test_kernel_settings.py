# SPDX-License-Identifier: MIT
"""Settings of the kernel for a run: in force in the lab, as before after it, nowhere else."""

from pathlib import Path

import pytest

from base.shell import CommandError
from experiments.catalogue import thin_settings
from experiments.catalogue.thin_settings import DEFAULTS, ONE_AT_A_TIME, SETTINGS
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.workloads import kernel
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs
from topologies.nodes import read_sysctls

__all__ = ["labs"]

KEYS = [key for key, _, _ in SETTINGS.values()]
OTHERS = {key: str(other) for key, _, other in SETTINGS.values()}


def of_the_machine() -> dict[str, str]:
    return {key: Path("/proc/sys", *key.split(".")).read_text() for key in KEYS}


def test_settings_are_of_the_lab_alone_and_for_the_run_alone(labs: Path, tmp_path: Path) -> None:
    outside = of_the_machine()
    with Labs() as made, live(made, tmp_path / "run", configuration(way="direct")) as run:
        nodes = (run.lab.client, run.lab.rp, *run.lab.servers)
        before = [read_sysctls(it.namespace, KEYS) for it in nodes]
        assert OTHERS not in before
        with kernel.settings(run.lab, OTHERS):
            assert [read_sysctls(it.namespace, KEYS) for it in nodes] == [OTHERS] * len(nodes)
            assert of_the_machine() == outside
        assert [read_sysctls(it.namespace, KEYS) for it in nodes] == before
        with pytest.raises(RuntimeError, match="in the block"):
            with kernel.settings(run.lab, OTHERS):
                raise RuntimeError("in the block")
        assert [read_sysctls(it.namespace, KEYS) for it in nodes] == before
        with pytest.raises(RunFailed, match=r"client: this kernel has no setting \S+_thick"):
            with kernel.settings(run.lab, {"net.ipv4.tcp_thick": "1"}):
                pass
        with pytest.raises(CommandError):
            with kernel.settings(run.lab, {KEYS[0]: "99"}):
                pass
        assert [read_sysctls(it.namespace, KEYS) for it in nodes] == before


def test_each_setting_is_changed_alone() -> None:
    changed = [
        {name for name, value in it.items() if value != DEFAULTS[name]} for it in ONE_AT_A_TIME
    ]
    assert changed == [set(), *({name} for name in SETTINGS)]
    experiment = thin_settings.ThinSettings()
    known = {it.name for it in experiment.parameters}
    assert set(SETTINGS) <= known
    for claim in experiment.claims:
        assert claim.over is not None
        names = {it for it in claim.of if claim.of[it] != claim.over[it]}
        assert len(names) == 1 and names <= set(SETTINGS)
