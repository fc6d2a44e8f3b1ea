# SPDX-License-Identifier: MIT
"""A lab for a test: one of its own, or one that stands already and is changed to what is wanted.

By netem a lab is 160 commands, which take an emulated processor 20 s; changing it takes 2, and
reads back the same. linkem draws its chances from the first packet on: there each test has a lab
of its own.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from topologies.lab import Lab
from topologies.links import EmulatedLink
from topologies.presets import PRESETS
from topologies.topos import LastMile, LastMiles, TwoLastMiles

Shape = tuple[object, ...]  # what cannot be changed while a lab runs


def topology(preset: str, **options: object) -> LastMiles:
    return (LastMile if len(PRESETS[preset]) == 1 else TwoLastMiles)(preset, **options)


def miles(lab: Lab) -> list[EmulatedLink]:
    return list(lab.miles.values())


class Standing:
    """Labs by netem, kept until the end, written down where no test looks for its own."""

    def __init__(self, registry: Path) -> None:
        self.registry = registry
        self._labs: dict[Shape, Lab] = {}
        self._stack = ExitStack()

    @contextmanager
    def lab(self, preset: str, *, logs: Path, **options: object) -> Iterator[Lab]:
        topo = topology(preset, **options)
        if topo.choice.realisation != "netem":
            with Lab(topo, logs=logs) as lab:
                yield lab
            return
        with self._registered():
            lab = self._changed(topo)
            lab.state.logs = logs
            yield lab

    def _changed(self, topo: LastMiles) -> Lab:
        shape = (topo.bottleneck, topo.wan, *((mile.mtu, mile.seed) for mile in topo.miles))
        if shape not in self._labs:
            self._labs[shape] = self._stack.enter_context(Lab(topo))
        lab = self._labs[shape]
        for link, mile in zip(miles(lab), topo.miles, strict=True):
            if link.mile != mile:
                link.change(**mile.as_dict())
        return lab

    @contextmanager
    def _registered(self) -> Iterator[None]:
        before = os.environ.get("TM3_RUN")
        os.environ["TM3_RUN"] = str(self.registry)
        try:
            yield
        finally:
            del os.environ["TM3_RUN"]
            if before is not None:
                os.environ["TM3_RUN"] = before

    def close(self) -> list[Path]:
        """What is left of them, which is nothing."""
        with self._registered():
            self._stack.close()
        left = sorted(self.registry.iterdir()) if self.registry.exists() else []
        if self.registry.exists() and not left:
            self.registry.rmdir()
        return left
