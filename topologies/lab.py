# SPDX-License-Identifier: MIT
"""A topology brought to life, with both proxies: `with Lab(LastMile("lte")) as lab: ...`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from topologies import record
from topologies.network import Network
from topologies.proxies import Proxies, proxies
from topologies.redirect import redirected
from topologies.topos import LastMiles


class Lab(Network):
    """A network in which proxies run, and that tells what was in force."""

    def __init__(self, topo: LastMiles, *, logs: Path | None = None, drops: bool = False) -> None:
        super().__init__(topo, logs=logs, drops=drops)
        self._proxies: list[Proxies] = []

    @contextmanager
    def proxies(self, pipes: int = 4, **options: Any) -> Iterator[Proxies]:
        """rp and lp, running and connected; see topologies.proxies."""
        with proxies(self, pipes, **options) as pair:
            self._proxies.append(pair)
            try:
                yield pair
            finally:
                self._proxies.remove(pair)

    @contextmanager
    def redirected(self, ports: tuple[int, ...] | None = None) -> Iterator[str]:
        """Unmodified programs of the client go through the pipes; see topologies.redirect."""
        with redirected(self.client, ports) as rules:
            yield rules

    def record(self) -> dict[str, Any]:
        """What is in force, read back now; of the proxies, those that run."""
        return record.of(self, self._proxies)
