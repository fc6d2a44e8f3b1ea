# SPDX-License-Identifier: MIT
"""A lab that stays up between runs: changed where that will do, made anew where it will not."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from base.scope import Scope
from experiments import guest, parameters
from experiments.machine import Late
from topologies.choice import choose
from topologies.lab import Lab
from topologies.mile import Mile
from topologies.nodes import SettingRefused
from topologies.parameter import ParameterError, Params
from topologies.proxies import Proxies
from topologies.topos import LastMile, LastMiles, TwoLastMiles
from topologies.wan import Wan

T = TypeVar("T")
_FIXED = ("mtu", "seed")  # of a mile: not to be changed while its link runs


def topology(
    params: Params,
    seed: int,
    shared: Path | None = None,
    sysctls: Mapping[str, str] | None = None,
) -> LastMiles:
    """What Lab() takes. `shared`: above all that a virtual machine writes. `sysctls`: beside those
    that every lab sets."""
    asked = parameters.lab_parameters(params)
    if sysctls:
        asked["sysctls"] = sysctls
    if params["client"] == "vm":
        asked["shared"] = shared
    cls = TwoLastMiles if parameters.is_two(params) else LastMile
    return cls(asked.pop("preset"), seed=seed, **asked)


def key(params: Params) -> tuple[Any, ...]:
    """Runs of the same key can use one lab."""
    miles = parameters.miles(params)
    wan = Wan(float(params["wan_mbps"]), float(params["wan_rtt_ms"]))  # type: ignore[arg-type]
    try:
        realisation = choose(str(params["link"]), (*miles, wan.mile())).realisation
    except ParameterError:
        realisation = "impossible"  # topology() says why
    alone = ("bottleneck", "initcwnd", "initrwnd", "client")
    servers = params.get("servers") or 1
    return (len(miles), miles[0].mtu, wan, realisation, servers, *(params[it] for it in alone))


@dataclass
class Labs(Scope):
    """At most one lab at a time, and what experiments keep running in it.

    `shared`: the results folder, above all that runs log; a client that is a virtual machine
    writes there.
    """

    shared: Path | None = None
    sysctls: Mapping[str, str] = field(default_factory=dict)  # as they were in force before
    drops: bool = False  # each packet that a link drops is told
    lab: Lab | None = None
    _key: tuple[Any, ...] | None = None
    _cc: str | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _kept: dict[str, Any] = field(default_factory=dict)

    def close(self, error: BaseException | None) -> None:
        self.dismantle()

    def get(self, params: Params, seed: int) -> Lab:
        """The lab as this configuration wants it."""
        if self.lab is None or key(params) != self._key:
            self.dismantle()
            self._make(params, seed)
        else:
            self._change(params)
        assert self.lab is not None
        self._set_cc(str(params["cc"]))
        return self.lab

    def making_s(self, params: Params) -> float:
        """What it may take until `get` has a lab, beyond what a run is given for that."""
        stands = self.lab is not None and key(params) == self._key
        return guest.BOOT_S if params["client"] == "vm" and not stands else 0.0

    def _make(self, params: Params, seed: int) -> None:
        with ExitStack() as stack:
            self.lab = stack.enter_context(
                Lab(topology(params, seed, self.shared, self.sysctls), drops=self.drops)
            )
            self._key = key(params)
            self._stack = stack.pop_all()

    def _change(self, params: Params) -> None:
        assert self.lab is not None
        for link, mile in zip(self.lab.miles.values(), parameters.miles(params), strict=True):
            if _without_fixed(mile) != _without_fixed(link.mile):
                link.change(**_without_fixed(mile))
        self.lab.topo.preset = str(params["preset"])

    def _set_cc(self, cc: str) -> None:
        """By route, for every program of client and server; proxies set theirs to the same."""
        assert self.lab is not None
        if cc == self._cc:
            return
        for node in (self.lab.client, *self.lab.servers):
            for route in node.inside("ip", "route", "show").splitlines():
                words = route.split()
                if "congctl" in words:
                    at = words.index("congctl")
                    del words[at : at + 2]
                node.inside("ip", "route", "replace", *words, "congctl", cc)
            told = node.inside("ip", "route", "show").splitlines()
            if not all(f"congctl {cc}" in route for route in told):
                raise SettingRefused(f"cc {cc}: {node.name} has routes without it: {told}")
        self._cc = cc

    def kept(self, name: str, make: Callable[[], AbstractContextManager[T]]) -> T:
        """What `make` makes, entered once and left with the lab."""
        if name not in self._kept:
            assert self.lab is not None, "there is no lab to keep it in"
            logs, self.lab.state.logs = self.lab.state.logs, None  # it outlives this run's folder
            try:
                self._kept[name] = self._stack.enter_context(make())
            finally:
                self.lab.state.logs = logs
        return self._kept[name]

    def logs(self) -> list[Path]:
        """Of what is kept, and of the links."""
        if self.lab is None:
            return []
        folder = self.lab.state.folder
        return [path for path in folder.glob("*.log") if path.stat().st_size]

    def gone(self) -> str | None:
        """Of a client that is a virtual machine and ended by itself."""
        return guest.gone(self.lab) if self.lab is not None else None

    def dismantle(self) -> None:
        self._kept.clear()
        self.lab = self._key = self._cc = None
        stack, self._stack = self._stack, ExitStack()
        stack.close()


def _without_fixed(mile: Mile) -> dict[str, Any]:
    return {name: value for name, value in mile.as_dict().items() if name not in _FIXED}


def restart(lab: Lab, seed: int) -> None:
    """Every link begins its draw anew; the second last mile's seed is one further."""
    for number, (name, link) in enumerate(lab.links.items()):
        link.restart(seed + (number if name in lab.miles else 0))


Counts = dict[str, dict[str, int]]
_COUNTED = ("in_packets", "in_bytes", "lost_packets", "dropped_queue_packets", "out_bytes")


def account(lab: Lab) -> Counts:
    """What each last mile counted so far; nothing where it does not count by itself."""
    found = {}
    for name, link in lab.miles.items():
        truth = getattr(link, "truth", None)
        if truth is not None:
            told = truth()
            for way, side in (("up", "ab"), ("down", "ba")):
                counters = told[side]["counters"]
                found[f"{name} {way}"] = {it: counters[it] for it in _COUNTED}
    return found


def lateness(lab: Lab) -> Late:
    """How late each linkem delivered since its draw last began; nothing where there is none."""
    found: Late = {}
    for name, link in lab.links.items():
        truth = getattr(link, "truth", None)
        told = truth() if truth is not None else {}
        for way, side in (("up", "ab"), ("down", "ba")):
            late = told.get(side, {}).get("late_us")
            if late and late["packets"]:
                found[f"{name} {way}"] = {it: late[it] for it in ("packets", "p99", "max")}
    return found


def emulators(lab: Lab) -> tuple[int, ...]:
    """The processes of the links that are emulated here."""
    programs = [getattr(link, "program", None) for link in lab.links.values()]
    return tuple(it.pid for it in programs if it is not None)


def proxies(pair: Proxies | None) -> dict[str, int]:
    """The processes of rp and lp, where a run has pipes."""
    return {"rp": pair.rp.pid, "lp": pair.lp.pid} if pair else {}


def difference(before: Counts, after: Counts) -> Counts:
    return {
        link: {name: value - before[link][name] for name, value in counts.items()}
        for link, counts in after.items()
    }


def name_of(params: Params) -> str:
    """Of a kind of lab, in words: all that decides what is in force in it, but not what runs."""
    sides = "two last miles" if parameters.is_two(params) else "one last mile"
    changed = [
        f"{name} {params[name]}"
        for name in parameters.CHANGES
        if params.get(name) != parameters.UNCHANGED[name]
    ]
    words = [str(params["preset"]), sides, *changed, f"bottleneck {params['bottleneck']}"]
    words += [f"link {params['link']}", f"cc {params['cc']}", str(params["way"])]
    words += [f"extend {params['extend']}"] if params.get("extend") else []
    words += ["client vm"] if params["client"] == "vm" else []
    words += [f"proxies {params['proxies']}"] if params.get("proxies") else []
    return ", ".join(words)
