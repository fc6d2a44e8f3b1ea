# SPDX-License-Identifier: MIT
"""Table 6: a 4 KB object beside bulk over the same pipes, by buffers, early against late."""

from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.catalogue import early
from experiments.catalogue.object import PRINTED_S
from experiments.causes.front import Front
from experiments.causes.printed import Printed
from experiments.model import Claim, Experiment, Figure, Grid, Metric, as_grid
from experiments.workloads import account, buffers, objects
from topologies.parameter import Params

if TYPE_CHECKING:
    from experiments.live_run import LiveRun

MB = 1_000_000
LINK: Params = {"preset": "wired", "bottleneck": "sender"}


class Row(NamedTuple):
    """A line of the table: bytes of each pipe's send buffer and of the proxy's own for all pipes
    together, seconds early and late."""

    pipes: int
    sndbuf: int | None
    app: int | None
    early_s: float
    late_s: float

    def early(self) -> Params:
        """The proxies count buffers by pipe, the table the proxy's own for all of them."""
        app = self.app // self.pipes if self.app else None
        return {
            "pipes": self.pipes,
            **early.EARLY,
            "pipe_sndbuf": self.sndbuf,
            "app_buffer": app,
        }

    def late(self) -> Params:
        return {"pipes": self.pipes, **early.LATE, "pipe_sndbuf": None, "app_buffer": None}

    def says(self) -> str:
        def size(value: int | None, without: str) -> str:
            if not value:
                return without
            return f"{value / MB:g} MB" if value >= MB else f"{value // 1000} KB"

        pipes = f"{self.pipes} pipe{'s' if self.pipes > 1 else ''}"
        return f"{pipes}, send buffer {size(self.sndbuf, 'default')}, queue {size(self.app, '0')}"


TABLE = (
    Row(1, None, None, 0.24, 0.06),
    Row(1, None, 2 * MB, 2.30, 0.06),
    Row(1, 2 * MB, None, 1.23, 0.06),
    Row(1, 2 * MB, 2 * MB, 2.67, 0.06),
    Row(8, None, None, 0.31, 0.07),
    Row(8, None, 2 * MB, 1.98, 0.07),
    Row(8, MB // 4, None, 1.22, 0.07),
    Row(8, MB // 4, 2 * MB, 2.75, 0.07),
)


def grids_of(rows: tuple[Row, ...], link: Params) -> tuple[Grid, ...]:
    """Each line early; late binding has no buffers to vary, so one configuration by pipes."""
    late = {row.pipes: row.late() for row in rows}
    return tuple(as_grid(each, link) for each in (*(row.early() for row in rows), *late.values()))


def claims_of(
    name: str, where: str, rows: tuple[Row, ...], link: Params, place: str = ""
) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            row=name,
            where=where,
            says=f"{row.says()}{place}: late binding instead of early",
            of={**link, **row.late()},
            over={**link, **row.early()},
            metric="object_p50_s",
            paper=row.late_s / row.early_s,
            paper_sides=(row.late_s, row.early_s),
            causes=(Front(), Printed(PRINTED_S)),
        )
        for row in rows
    )


def blocked(run: "LiveRun") -> dict[str, Any]:
    buffers.check(run)
    measures = objects.beside_bulk(run, count=4, seconds=1.5)
    told = account.account(run, connections=2)
    asked = run.went + objects.SETTLE_S
    held = account.held(told.rp, asked, asked + sum(measures["objects_s"]))
    return measures | told.measures() | {"held_bytes": held}


class SenderBlocking(Experiment):
    name = "sender-blocking"
    title = "What waits in the sender"
    question = "How long does a small object wait behind a bulk transfer that shares its pipes?"
    metrics = (
        Metric("object_p50_s", "time of an object, median", "s", matters=0.1),
        Metric("object_p95_s", "time of an object, 95th percentile", "s"),
        Metric("bulk_mbps", "goodput of the bulk", "Mbit/s", "more", matters=0.02),
        Metric("held_bytes", "in the pipes' sockets and on their way", "bytes", "neither"),
    )
    grids = (
        *grids_of(TABLE, LINK),
        {"preset": ("wired",), "bottleneck": ("sender",), "way": ("direct",)},
    )
    reps = 10
    quick_reps = 5
    run_seconds = 4.5
    claims = (
        *claims_of("sender-blocking", "Table 6", TABLE, LINK),
        *(
            Claim(
                row="sender-blocking",
                where="Table 6",
                says=f"{row.pipes} pipe{'s' if row.pipes > 1 else ''}, late binding",
                of={**LINK, **row.late()},
                metric="object_p50_s",
                paper=row.late_s,
                unit="s",
                expect="less",
                than=0.1,
                note="Alone the object takes 0.056 s. Beside bulk it also waits for the few "
                "segments that may queue by design; see the experiment object.",
            )
            for row in (TABLE[0], TABLE[4])
        ),
        Claim(
            row="sender-blocking",
            where="§6.4",
            says="8 pipes, goodput of the bulk, late binding instead of early",
            of={**LINK, **TABLE[4].late()},
            over={**LINK, **TABLE[4].early()},
            metric="bulk_mbps",
            paper=1.0,
            expect="same",
        ),
    )
    figures = (
        Figure(
            name="objects",
            title="A 4 KB object beside bulk",
            kind="against",
            y="object_p50_s",
            x="app_buffer",
            hue="binding",
            facet="pipes",
            log=True,
        ),
    )
    notes = (
        "The published queue in the proxy is one for all pipes; here each pipe has its share. "
        "Objects are asked for one after the other on one connection that is open already.",
        "Late binding has no buffers to choose: one configuration for each number of pipes "
        "stands beside all lines of the table.",
        early.NOTE,
    )

    def measure(self, run: "LiveRun") -> dict[str, Any]:
        if run.pair is None:
            return objects.beside_bulk(run, count=4, seconds=1.5)
        return blocked(run)
