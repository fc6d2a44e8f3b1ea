# SPDX-License-Identifier: MIT
"""What a run stands on: a lab as its configuration wants it, pipes freshly dialled, a folder."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from base.shell import until
from experiments import parameters, stand, warm
from experiments.stand import Stand
from topologies.lab import Lab
from topologies.parameter import Params
from topologies.proxies import Proxies, capture

T = TypeVar("T")
QUIET_S = 3.0
STATS_INTERVAL_S = 0.1


@dataclass
class Bed:
    """`params` are all of this run's. What a workload writes into `folder` is kept of a run that
    failed and of repetition 0. With pipes the client is redirected: unmodified programs go
    through them."""

    lab: Lab
    params: Params
    seed: int
    folder: Path
    pair: Proxies | None
    deadline: float  # of time.monotonic()
    _stand: Stand
    noted: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # of the run's record, beside `measures`
    begun: bool = False
    went: float = 0.0  # when the latest client did, by time.monotonic()

    def kept(self, name: str, make: Callable[[], AbstractContextManager[T]]) -> T:
        """What lives as long as the lab stands: a web server, say. Made when first asked for."""
        return self._stand.kept(name, make)

    def begin(self) -> None:
        """The last thing before the client goes, once a run: pipes are warmed if they are to be,
        and the links' draw begins anew."""
        if self.begun:
            return
        self.begun = True
        if self.params["warm"]:
            self.facts["warm"] = warm.up(self)
        stand.restart(self.lab, self.seed)

    def note(self, **measures: Any) -> None:
        """More for `measures`."""
        self.noted.update(measures)


def _options(params: Params) -> list[str]:
    """Of both proxies."""
    words = [f"--binding={params['binding']}"]
    words.append(f"--pipe-policy={params['pipe_policy']}")
    for name in ("conn_policy", "aggregate", "lambda", "app_buffer", "pipe_sndbuf"):
        if params[name] is not None:
            words.append(f"--{name.replace('_', '-')}={params[name]}")
    return words


def _seeded(options: list[str], params: Params, seed: int) -> list[str]:
    return [*options, f"--seed={seed}"] if params["pipe_policy"] == "random" else options


@contextmanager
def _pair(lab: Lab, params: Params, seed: int, keep_pcaps: bool) -> Iterator[Proxies | None]:
    """The proxies of a run, or nothing; captures of what goes over the last mile."""
    if not params["pipes"]:
        with ExitStack() as stack:
            if keep_pcaps:
                device = "client-eth0"
                stack.enter_context(capture(lab, lab.client, f"direct-{device}", device, "tcp"))
            yield None
        return
    words = _seeded(_options(params), params, seed)
    with lab.proxies(
        int(params["pipes"]),  # type: ignore[arg-type]
        cc=str(params["cc"]),
        transport=str(params["transport"]),
        rp=words,
        lp=words,
        capture=("pipes", "application") if keep_pcaps else (),
        stats_interval_s=STATS_INTERVAL_S,
        build=parameters.proxies_folder(params),
    ) as pair:
        with lab.client.module() if params["client"] == "vm" else lab.redirected():
            yield pair


def open_sockets(lab: Lab) -> list[str]:
    """Connections of earlier programs that may still send something."""
    words = ("ss", "-Htn", "state", "connected", "exclude", "time-wait")
    return [
        f"{node.name}: {' '.join(line.split())}"
        for node in (lab.client, lab.rp, lab.server)
        for line in node.inside(*words).splitlines()
    ]


def settle(lab: Lab) -> list[str]:
    """Waits until nobody has anything left to say; whoever has, still."""
    try:
        until("all connections to end", lambda: not open_sockets(lab), QUIET_S)
    except TimeoutError:
        return open_sockets(lab)
    return []


@contextmanager
def laid(
    stand_: Stand, params: Params, seed: int, folder: Path, limit_s: float, *, keep_pcaps: bool
) -> Iterator[Bed]:
    """A bed for one run. The links' draw begins with this seed when the pipes are dialled and
    again when the client goes: a run's n-th packet meets the same fate in every configuration."""
    lab = stand_.get(params, seed)
    lab.state.logs = folder
    try:
        stand.restart(lab, seed)
        with _pair(lab, params, seed, keep_pcaps) as pair:
            bed = Bed(lab, params, seed, folder, pair, time.monotonic() + limit_s, stand_)
            yield bed
        left = settle(lab)
        if left:
            bed.facts["still_open"] = left
    finally:
        if stand_.lab is lab:
            lab.state.logs = None
