# SPDX-License-Identifier: MIT
"""Table 1 once more, with the buffers that its published times tell of."""

from experiments.catalogue.object import PUBLISHED, RATES, SHARED, Object
from experiments.causes.front import Front
from experiments.model import Claim, Figure, Grid, as_grid
from topologies.parameter import Params

# By the law of what stands in front of an object (causes/front.py) the published times are of 96 to
# 108 KB and of 9.4 to 10.1 MB, whatever the rate. CUBIC fills four fifths of a queue.
QUEUE_KB = 128.0
APP_BYTES = 10_000_000
NAMES = ("connections of their own", "one shared connection")


def as_published(mbps: float) -> tuple[Params, Params]:
    """By connections of their own, and by one that is shared."""
    link: Params = {"bottleneck": "sender", "mbps": mbps, "queue_ms": QUEUE_KB * 8 / mbps}
    bulk: Params = {**link, "bulk": True, "bulk_way": "down"}
    return {**bulk, "way": "direct"}, {**bulk, **SHARED, "app_buffer": APP_BYTES}


def grids() -> tuple[Grid, ...]:
    return tuple(as_grid(each) for mbps in RATES for each in as_published(mbps))


class ObjectBuffers(Object):
    """By itself: `object` has a queue of 100 ms at each rate, as the presets have."""

    name = "object-buffers"
    ways = ("pipes", "direct")
    title = "A small object beside a bulk download, by buffers of bytes"
    question = "Does one queue and one buffer, in bytes, give the published times at each rate?"
    grids = grids()
    quick_grids = ()
    in_all_quick = False
    run_seconds = 12.0
    claims = tuple(
        Claim(
            row="object-spdy",
            where="Table 1",
            says=f"{who}, beside bulk, at {mbps:g} Mbit/s, where {QUEUE_KB:g} KB queue"
            + (f" and {APP_BYTES / 1e6:g} MB wait in the proxy" if "pipes" in of else ""),
            of=of,
            metric="object_p50_s",
            paper=seconds,
            unit="s",
            expect="same",
            than=seconds,
            causes=(Front(),),
        )
        for mbps in RATES
        for who, of, seconds in zip(NAMES, as_published(mbps), PUBLISHED[mbps], strict=True)
    )
    figures = (
        Figure(
            name="by-rate",
            title="A 4 KB object beside a bulk download, buffers of bytes",
            kind="against",
            y="object_p50_s",
            x="mbps",
            hue="binding",
            log=True,
        ),
    )
    notes = (
        "In `object` the queue is 100 ms deep at each rate, and 4 MB wait in the proxy; so its "
        "times are others than published. Those are of one queue and of one buffer at all rates, "
        f"by their bytes: about 100 KB and 10 MB. Here the queue holds {QUEUE_KB:g} KB, of which "
        "CUBIC fills four fifths, and the proxy 10 MB.",
        *Object.notes[-1:],
    )
