# SPDX-License-Identifier: MIT
"""A run as its experiment and its workloads see it: the lab, the pipes, where to write."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from experiments.labs import Labs
from topologies.lab import Lab
from topologies.parameter import Params
from topologies.proxies import Proxies

T = TypeVar("T")


@dataclass
class LiveRun:
    """`params` are all of this run's. What a workload writes into `folder` is kept of a run that
    failed and of repetition 0. With pipes the client is redirected: unmodified programs go
    through them."""

    lab: Lab
    params: Params
    seed: int
    folder: Path
    pair: Proxies | None
    deadline: float  # of time.monotonic()
    _labs: Labs
    _before: "Callable[[LiveRun], None]"  # what is done before the client goes
    noted: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # of the run's record, beside `measures`
    voids: list[str] = field(default_factory=list)  # why the run is void
    begun: bool = False
    went: float = 0.0  # when the latest client did, by time.monotonic()

    def kept(self, name: str, make: Callable[[], AbstractContextManager[T]]) -> T:
        """What lives as long as the lab stands: a web server, say. Made when first asked for."""
        return self._labs.kept(name, make)

    def begin(self) -> None:
        """The last thing before the client goes, once a run: pipes are warmed if they are to be,
        and the links' draw begins anew."""
        if self.begun:
            return
        self.begun = True
        self._before(self)

    def void(self, why: str) -> None:
        """The machine did not keep up, so that the run measured the machine; if it did, nothing."""
        if why:
            self.voids.append(why)

    def note(self, **measures: Any) -> None:
        """More for `measures`."""
        self.noted.update(measures)
