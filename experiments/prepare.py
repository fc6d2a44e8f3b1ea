# SPDX-License-Identifier: MIT
"""What comes before a run's client goes and after it: a lab, pipes freshly dialled, warm or not."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from base.shell import until
from experiments import parameters, warm
from experiments.failure import RunFailed
from experiments.labs import Labs, restart
from experiments.live_run import LiveRun
from experiments.model import Experiment
from topologies import dialect, splitter
from topologies.lab import Lab
from topologies.parameter import Params
from topologies.proxies import Proxies, capture

QUIET_S = 3.0
STATS_INTERVAL_S = 0.1
FIREWALL = "firewall"


@dataclass(frozen=True)
class More:
    """What an experiment wants of its proxies besides: options, paths over the last miles, a
    socket on which lp takes commands, and ports that a firewall at rp drops."""

    lp: Sequence[str] = ()
    rp: Sequence[str] = ()
    paths: Sequence[str] = ()
    control: bool = False
    firewalled: Sequence[int] = ()


def wanted_by(experiment: Experiment, params: Params, folder: Path) -> More:
    lp, rp = experiment.lp_options(params, folder), experiment.rp_options(params, folder)
    closed = experiment.firewalled(params)
    return More(lp, rp, experiment.paths, experiment.controls(params), closed)


def _warm_and_restart(run: LiveRun) -> None:
    if run.params["warm"]:
        run.facts["warm"] = warm.up(run)
    restart(run.lab, run.seed)


def options_of(params: Params) -> list[str]:
    """Of both proxies."""
    words = [f"--binding={params['binding']}"]
    words.append(f"--pipe-policy={params['pipe_policy']}")
    for name in ("conn_policy", "aggregate", "lambda", "thin", "app_buffer", "pipe_sndbuf"):
        if params[name] is not None:
            words.append(f"--{name.replace('_', '-')}={params[name]}")
    return words


def _seeded(options: list[str], params: Params, seed: int) -> list[str]:
    return [*options, f"--seed={seed}"] if params["pipe_policy"] == "random" else options


@contextmanager
def _firewall(lab: Lab, ports: Sequence[int]) -> Iterator[None]:
    """rp's host drops what goes to these ports, as long as the block runs."""
    if not ports:
        yield
        return
    chain = "type filter hook input priority filter;"
    rule = f"tcp dport {{ {', '.join(map(str, ports))} }} drop"
    table = f"table ip {FIREWALL} {{ chain in {{ {chain} {rule}; }}; }}"
    lab.rp.inside("nft", "-f", "-", stdin=table)
    try:
        yield
    finally:
        lab.rp.inside("nft", "delete", "table", "ip", FIREWALL)


@contextmanager
def _pair(
    lab: Lab, params: Params, seed: int, keep_pcaps: bool, more: More
) -> Iterator[Proxies | None]:
    """The proxies of a run, or nothing; captures of what goes over the last mile."""
    if not params["pipes"]:
        with ExitStack() as stack:
            if keep_pcaps:
                device = "client-eth0"
                stack.enter_context(capture(lab, lab.client, f"direct-{device}", device, "tcp"))
            yield None
        return
    words = _seeded(options_of(params), params, seed)
    with (
        _firewall(lab, more.firewalled),
        lab.proxies(
            int(params["pipes"]),  # type: ignore[arg-type]
            cc=str(params["cc"]),
            transport=str(params["transport"]),
            extend=str(params["extend"]),
            key=bool(params["key"]),
            rp=[*words, *more.rp],
            lp=[*words, *more.lp],
            paths=more.paths,
            control=more.control,
            capture=("pipes", "application") if keep_pcaps else (),
            stats_interval_s=STATS_INTERVAL_S,
            build=parameters.proxies_folder(params),
        ) as pair,
    ):
        with lab.client.module() if params["client"] == "vm" else lab.redirected():
            yield pair


@contextmanager
def _splitter(lab: Lab, params: Params) -> Iterator[splitter.Splitter | None]:
    """Where a splitting proxy takes the place of the pipes."""
    if params["way"] != "haproxy":
        yield None
        return
    with splitter.splitting(lab, str(params["cc"])) as running:
        yield running


def _told_of(split: splitter.Splitter) -> dict[str, object]:
    """Raises RunFailed where all went past it."""
    count = split.connections()
    if not count:
        raise RunFailed("no connection went through the splitting proxy")
    return {"version": splitter.version(split.program.argv[0]), "connections": count}


def open_sockets(lab: Lab) -> list[str]:
    """Connections of earlier programs that may still send something."""
    return [
        f"{node.name}: {' '.join(line.split())}"
        for node in (lab.client, lab.rp, *lab.servers)
        for line in node.connections()
    ]


def settle(lab: Lab) -> list[str]:
    """Waits until nobody has anything left to say; whoever has, still."""
    try:
        until("all connections to end", lambda: not open_sockets(lab), QUIET_S)
    except TimeoutError:
        return open_sockets(lab)
    return []


@contextmanager
def prepared(
    labs: Labs,
    params: Params,
    seed: int,
    folder: Path,
    limit_s: float,
    *,
    keep_pcaps: bool,
    more: More = More(),
) -> Iterator[LiveRun]:
    """A run whose client may go; `more` is of the pipes, where there are any. The links' draw
    begins with this seed when the pipes are dialled and again when the client goes: the n-th packet
    meets the same fate in every configuration."""
    lab = labs.get(params, seed)
    lab.state.logs = folder
    try:
        restart(lab, seed)
        with (
            _pair(lab, params, seed, keep_pcaps, more) as pair,
            _splitter(lab, params) as split,
        ):
            deadline = time.monotonic() + limit_s
            run = LiveRun(lab, params, seed, folder, pair, deadline, labs, _warm_and_restart)
            yield run
            if pair:
                dialect.check(str(params["extend"]), pair.dialect())
                run.facts["dialect"] = pair.dialect()
            if split:
                run.facts["splitter"] = _told_of(split)
        left = settle(lab)
        if left:
            run.facts["still_open"] = left
    finally:
        if labs.lab is lab:
            lab.state.logs = None
