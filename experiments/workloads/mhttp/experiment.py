# SPDX-License-Identifier: MIT
"""What the experiments with mHTTP have in common."""

from typing import TYPE_CHECKING, Any, ClassVar

from experiments.causes.ranges import Ranges
from experiments.failure import RunFailed
from experiments.model import OWN, Claim, Experiment, Metric
from experiments.parameters import is_two, miles
from experiments.workloads import fetch, rates
from experiments.workloads.mhttp import begun, serial
from experiments.workloads.mhttp.scheduler import SCHEDULERS
from topologies.addresses import client_address
from topologies.parameter import Parameter, Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

KB, MB = 1000, 1_000_000
CHUNK = 1024 * KB
MHTTP = (("fetch", "mhttp"),)
# Both paths are alike unless a grid says otherwise, and all of a round trip is the last mile's.
ONE_PATH: Params = {"way": "direct", "preset": "wired", "wan_rtt_ms": 0.0, "mbps": 100.0}
TWO_PATHS: Params = {**ONE_PATH, "topology": "two", "servers": 2}
PLAIN: Params = {"fetch": "http", "path": 1, "scheduler": None, "chunk": None}
RANGES: Params = {"fetch": "mhttp"}
PARAMETERS = (
    Parameter("size", 16 * MB, "size", "of the object", low=1, high=1 << 30),
    Parameter(
        "fetch",
        "mhttp",
        "text",
        "http: by one plain GET; mhttp: by ranges, over all paths",
        ("http", "mhttp"),
    ),
    Parameter(
        "path", 1, "whole", "that a plain GET goes by", low=1, high=2, needs=(("fetch", "http"),)
    ),
    Parameter("scheduler", "T", "text", "of mHTTP", tuple(SCHEDULERS), needs=MHTTP),
    Parameter("chunk", CHUNK, "size", "of a range", low=1, high=1 << 30, needs=MHTTP, noun="range"),
)
METRICS = (
    Metric("completion_s", "completion time", "s", matters=0.05),
    Metric("goodput_mbps", "goodput", "Mbit/s", "more", matters=0.02),
    Metric("of_paths", "goodput / what the paths carry together", "", "more", matters=0.02),
    Metric("over_serial", "completion time / that of serial requests", "", matters=0.05),
    Metric("peak_mb", "peak of the reorder buffer", "MB", matters=0.1),
    Metric("first_chunks", "ranges asked for by the first path", "", "neither"),
    Metric("second_chunks", "ranges asked for by the second path", "", "neither"),
    Metric("second_share", "share of the bytes that came by the second path", "", "neither"),
    Metric("look_up_s", "time of the name's look-up", "s"),
    Metric("client_cpu", "share of a core that the client took", ""),
)
# Of runs that are not all by ranges, or where round trips are not those of the last miles alone.
METRICS_OF_ANY = tuple(it for it in METRICS if it.name != "over_serial")


def ranges(scheduler: str, chunk: int = CHUNK) -> Params:
    return {**RANGES, "scheduler": scheduler, "chunk": chunk}


def own(row: str, says: str, of: Params, over: Params | None = None, **more: Any) -> Claim:
    return Claim(row, OWN, says, of, over, **more)


def paths(params: Params) -> list[serial.Served]:
    """The last miles, as they carry an object's bytes."""
    assert params["wan_rtt_ms"] is not None
    behind_ms = float(params["wan_rtt_ms"])
    share = rates.MSS / rates.FRAME
    found = []
    for it in miles(params):
        assert it.down_mbps is not None, "a last mile without a rate"
        rate = it.down_mbps * 1e6 / 8 * share
        found.append(serial.Served(rate, (it.rtt_ms + behind_ms) / 1e3))
    return found


def expected_s(params: Params, part: float = 1.0) -> float:
    """What requests one after another take, or MPTCP's one, with so much of the round trips."""
    served = [serial.Served(it.rate, it.rtt_s * part) for it in paths(params)]
    if params["way"] == "mptcp":
        return begun.together(served, size_of(params))
    if params["fetch"] == "http":
        number = int(params["path"]) - 1  # type: ignore[arg-type]
        return begun.plain(served[number], size_of(params))
    return begun.seconds(served, int(params["chunk"]), size_of(params))  # type: ignore[arg-type]


BY_RANGES = Ranges(expected_s)


class MhttpExperiment(Experiment):
    """Fetches an object in each run."""

    ways: ClassVar[tuple[str, ...]] = ("direct",)
    parameters = PARAMETERS
    packages = ("nginx", "unbound")
    modules = ("dns",)
    metrics = METRICS
    shown = ("goodput_mbps", "peak_mb", "client_cpu")
    reps = 30
    quick_reps = 5
    in_all_quick = False

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        return measures(run.params, fetch.object_of(run, size_of(run.params), *words(run.params)))

    def floor_s(self, params: Params) -> float:
        return rates.floor_s(params, size_of(params))


def size_of(params: Params) -> int:
    return int(params["size"])  # type: ignore[arg-type]


def words(params: Params, *, local: bool = True) -> list[str]:
    """Of the client; `local`: each path asks its own resolver."""
    if params["fetch"] == "http":
        return [*fetch.path(int(params["path"]) - 1)]  # type: ignore[arg-type]
    paths_of = [fetch.path(number, local=local) for number in range(1 + is_two(params))]
    every = [word for each in paths_of for word in each]
    alone = [] if is_two(params) else ["--always"]
    told = ("--scheduler", str(params["scheduler"]), "--chunk", str(params["chunk"]))
    return [*every, *alone, *told]


def measures(params: Params, found: dict[str, Any]) -> dict[str, Any]:
    """Raises RunFailed where the object was asked for in another way."""
    if (found["plain"] is None) != (params["fetch"] == "mhttp"):
        raise RunFailed(f"plain: {found['plain']}, asked for {params['fetch']}")
    size, seconds = size_of(params), found["seconds"]
    served = paths(params)
    legs = {leg["path"]: leg for leg in found["legs"]}
    asked = [legs.get(client_address(n), {"requests": 0, "bytes": 0}) for n in range(2)]
    told = {
        "completion_s": seconds,
        "goodput_mbps": size * 8 / 1e6 / seconds,
        "of_paths": size / seconds / sum(it.rate for it in served),
        "peak_mb": found["peak_bytes"] / MB,
        "first_chunks": asked[0]["requests"],
        "second_chunks": asked[1]["requests"],
        "second_share": asked[1]["bytes"] / size,
        "look_up_s": found["look_up_s"],
        "client_cpu": found["cpu_s"] / seconds,
    }
    if params["fetch"] == "mhttp":
        allowed_s = serial.seconds(served, int(params["chunk"]), size)  # type: ignore[arg-type]
        told["over_serial"] = seconds / allowed_s
    return told
