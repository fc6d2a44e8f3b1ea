# SPDX-License-Identifier: MIT
"""From single figures to tables: for a terminal, and as Markdown."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench import stats
from bench.kinds import ASKS, BULKS
from bench.measures import PACED_WAYS, metrics
from bench.rivals import BY_NAME, LIMIT, OURS, Rival
from bench.run import NOISY
from bench.stats import Spread

MARK = "*"
SAYS = "median (95 % interval; of fewer than 6 lowest..highest)"
Values = dict[tuple[str, str], dict[int, float]]  # (rival, metric) -> block -> value


@dataclass(frozen=True)
class Column:
    metric: str
    title: str
    digits: int


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[Column, ...]


MANY = {
    name: "both" if name == "both" else f"{it.way} {it.connections:,}"
    for name, it in BULKS.items()
    if it.connections > 1
}
FIGURES = (
    Table(
        "Bulk, one connection",
        (
            Column("down.rate", "down GB/s", 2),
            Column("up.rate", "up GB/s", 2),
            Column("down.cpu", "down CPU s/GB", 2),
            Column("up.cpu", "up CPU s/GB", 2),
        ),
    ),
    Table(
        "Bulk, both ways at once, and over many connections",
        tuple(
            Column(f"{name}.{what}", f"{MANY[name]} {title}", 2)
            for what, title in (("rate", "GB/s"), ("cpu", "CPU s/GB"))
            for name in MANY
        ),
    ),
    *(
        Table(
            f"Requests and answers, {what}",
            tuple(Column(f"{name}.{what}", f"{it.title}, µs", 0) for name, it in ASKS.items()),
        )
        for what in ("p50", "p99")
    ),
    Table(
        "Connections and latency",
        (
            Column("connects.rate", "connections/s", 0),
            Column("connects.cpu", "CPU µs/connection", 0),
            Column("echo.p50", "echo p50 µs", 1),
            Column("echo.p99", "echo p99 µs", 1),
        ),
    ),
    Table(
        "Connections that go on",
        (
            Column("churn.rate", "answered/s", 0),
            Column("churn.unanswered", "not answered", 0),
            Column("churn.pause", "longest pause ms", 0),
            Column("churn.p99", "p99 ms", 1),
            Column("churn.cpu", "CPU µs/connection", 0),
        ),
    ),
    Table(
        "Between the two halves, in packets of 1,500 bytes",
        (
            Column("wire.bulk", "more than bulk's bytes, %", 2),
            Column("wire.ask", "bytes for 100 there and back", 0),
        ),
    ),
    *(
        Table(
            f"100 Mbit/s of UDP, 1,200 bytes a packet, and of TCP, {way}",
            (
                Column(f"udp{after}.cpu", "UDP CPU µs/packet", 2),
                Column(f"udp{after}.tcp", "TCP CPU µs/packet", 2),
                Column(f"udp{after}.ratio", "UDP/TCP", 2),
                Column(f"udp{after}.lost", "lost %", 2),
                Column(f"socks{after}.cpu", "SOCKS5 CPU µs/packet", 2),
                Column(f"socks{after}.ratio", "SOCKS5/TCP", 2),
                Column(f"socks{after}.lost", "SOCKS5 lost %", 2),
            ),
        )
        for way, after in PACED_WAYS.items()
    ),
)
ADDED = Table(
    "Added to a direct echo",
    (Column("echo.p50", "p50 µs", 1), Column("echo.p99", "p99 µs", 1)),
)
OVER_LIMIT = Table(
    "Divided by two copy loops, block by block",
    (
        Column("down.rate", "down", 2),
        Column("up.rate", "up", 2),
        Column("down.cpu", "CPU/GB down", 2),
        Column("up.cpu", "CPU/GB up", 2),
        Column("connects.rate", "connections/s", 2),
        Column("connects.cpu", "CPU/connection", 2),
        Column("churn.cpu", "CPU/connection that goes on", 2),
        Column("echo.p50", "echo p50", 2),
        *(Column(f"{name}.rate", MANY[name], 2) for name in MANY),
        *(Column(f"{name}.cpu", f"CPU/GB {MANY[name]}", 2) for name in MANY),
        *(Column(f"{name}.p50", f"{it.title} p50", 2) for name, it in ASKS.items()),
    ),
)
RATIOS = Table(
    "rp + lp divided by the other, block by block",
    (
        Column("down.rate", "down", 2),
        Column("up.rate", "up", 2),
        Column("connects.rate", "connections/s", 2),
        Column("connects.cpu", "CPU/connection", 2),
        Column("down.cpu", "CPU/GB down", 2),
        Column("up.cpu", "CPU/GB up", 2),
        Column("echo.p50", "echo p50", 2),
        Column("idle.memory", "memory", 2),
    ),
)


def collect(figures: Sequence[dict[str, Any]]) -> Values:
    values: Values = {}
    for figure in figures:
        for metric, value in metrics(figure["measure"], figure).items():
            values.setdefault((figure["rival"], metric), {})[figure["block"]] = value
    return values


def failures(figures: Sequence[dict[str, Any]]) -> list[str]:
    lines: dict[str, int] = {}
    for figure in figures:
        if "failed" in figure:
            what = f"{figure['rival']}, {figure['measure']}, {figure['control']}"
            line = f"{what}: {figure['failed']}"
            lines[line] = lines.get(line, 0) + 1
    return [f"{line} ({count} times)" for line, count in lines.items()]


def cell(values: Sequence[float], digits: int) -> str:
    spread = Spread.of(values)
    if spread is None:
        return "-"
    if spread.count == 1:
        return f"{spread.median:.{digits}f}"
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f}..{spread.high:.{digits}f})"


Rows = list[list[str]]
Noisy = dict[str, int]  # measure -> blocks of it in which others had too much in each try


def noisy_blocks(figures: Sequence[dict[str, Any]]) -> Noisy:
    found: dict[str, set[int]] = {}
    for figure in figures:
        if figure.get("noisy"):
            found.setdefault(figure["measure"], set()).add(figure["block"])
    return {measure: len(blocks) for measure, blocks in found.items()}


def head(table: Table, noisy: Noisy) -> list[str]:
    """Marked with the number of noisy blocks, where there are any."""
    titles = [""]
    for column in table.columns:
        blocks = noisy.get(column.metric.partition(".")[0])
        titles.append(f"{column.title} {MARK}{blocks}" if blocks else column.title)
    return titles


def figure_rows(table: Table, rivals: Sequence[Rival], values: Values, noisy: Noisy) -> Rows:
    rows = [head(table, noisy)]
    for rival in rivals:
        cells = [
            cell(list(values.get((rival.name, column.metric), {}).values()), column.digits)
            for column in table.columns
        ]
        if set(cells) != {"-"}:
            rows.append([rival.title, *cells])
    return rows


def compared_rows(
    table: Table,
    rivals: Sequence[Rival],
    values: Values,
    noisy: Noisy,
    compare: Any,
    of: str | None,
) -> Rows:
    """`compare`s block by block: each rival with `of`, or with None ours with each rival."""
    rows = [head(table, noisy)]
    for rival in rivals:
        one, other = (OURS, rival.name) if of is None else (rival.name, of)
        if one == other:
            continue
        cells = []
        for column in table.columns:
            pair = [values.get((name, column.metric), {}) for name in (one, other)]
            cells.append(cell(compare(*pair), column.digits))
        if set(cells) != {"-"}:
            rows.append([rival.title, *cells])
    return rows


def memory_rows(rivals: Sequence[Rival], values: Values, counts: dict[str, int]) -> Rows:
    rows = [["", "connections", "KiB each", "of which"]]
    for rival in rivals:
        total = values.get((rival.name, "idle.memory"))
        if not total:
            continue
        roles = {
            metric.removeprefix("idle."): list(found.values())
            for (name, metric), found in values.items()
            if name == rival.name and metric.startswith("idle.") and metric != "idle.memory"
        }
        parts = ", ".join(f"{role} {cell(found, 2)}" for role, found in roles.items())
        rows.append([rival.title, str(counts[rival.name]), cell(list(total.values()), 2), parts])
    return rows


def without_empty_columns(rows: Rows) -> Rows:
    kept = [i for i in range(len(rows[0])) if i == 0 or any(row[i] != "-" for row in rows[1:])]
    return [[row[i] for i in kept] for row in rows]


def tables(result: dict[str, Any]) -> list[tuple[str, Rows]]:
    """All of them for each congestion control."""
    found = []
    for control in result["controls"]:
        figures = [it for it in result["figures"] if it["control"] == control]
        found += [(f"{title}, {control}", rows) for title, rows in tables_of(result, figures)]
    return found


def tables_of(result: dict[str, Any], figures: Sequence[dict[str, Any]]) -> list[tuple[str, Rows]]:
    values = collect(figures)
    rivals = [BY_NAME[name] for name in result["rivals"]]
    counts = {
        figure["rival"]: figure["connections"]
        for figure in figures
        if figure["measure"] == "idle" and "failed" not in figure
    }
    noisy = noisy_blocks(figures)

    def compared(table: Table, compare: Any, of: str | None) -> tuple[str, Rows]:
        return table.title, compared_rows(table, rivals, values, noisy, compare, of)

    found = [(table.title, figure_rows(table, rivals, values, noisy)) for table in FIGURES]
    found.append(compared(ADDED, stats.differences, "direct"))
    found.append(("Memory of an idle connection", memory_rows(rivals, values, counts)))
    found.append(compared(OVER_LIMIT, stats.ratios, LIMIT))
    found.append(compared(RATIOS, stats.ratios, None))
    return [(title, without_empty_columns(rows)) for title, rows in found if len(rows) > 1]


def padded(rows: Rows) -> list[list[str]]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        [
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]


def text(result: dict[str, Any]) -> str:
    return as_text(tables(result), notes(result))


def as_text(found: list[tuple[str, Rows]], remarks: list[str]) -> str:
    lines = []
    for title, rows in found:
        lines += ["", f"{title}: {SAYS}"]
        lines += ["  " + "  ".join(row).rstrip() for row in padded(rows)]
    return "\n".join(lines + remarks)


def disturbance(figures: Sequence[dict[str, Any]]) -> str:
    shares = sorted(figure["others_share"] for figure in figures)
    often = statistics.median(shares)
    return (
        f"Other processes had {often:.0%} of the two cores in the median measurement, "
        f"{shares[-1]:.0%} in the worst."
    )


def notes(result: dict[str, Any]) -> list[str]:
    lines = ["", disturbance(result["figures"])]
    for name in result["rivals"]:
        if BY_NAME[name].notes:
            lines.append(f"{BY_NAME[name].title}: {'; '.join(BY_NAME[name].notes)}.")
    lines += [f"Not measured: {name}: {why}." for name, why in result["skipped"].items()]
    again = result["repeated"]
    if again:
        lines.append(
            f"{len(again)} measurements are in no table: others had over {NOISY:.0%} of the cores "
            "in one of those that they would be compared with, and all of these were repeated."
        )
    if noisy_blocks(result["figures"]):
        lines.append(
            f"{MARK}n: in so many blocks others had over {NOISY:.0%} of the cores in each try; the "
            "quietest is in the table."
        )
    lines += [f"Failed: {line}" for line in failures([*again, *result["figures"]])]
    return lines


def blocks_of(result: dict[str, Any]) -> str:
    whole, planned = result["blocks"], result["planned"]
    return f"{whole} blocks" if whole == planned else f"{whole} of {planned} blocks"


def facts(result: dict[str, Any]) -> list[str]:
    machine = result["machine"]
    return [
        f"- {machine['cpu']}, {len(machine['processors_used'])} cores used, "
        f"Linux {machine['kernel']}, {' and '.join(result['controls'])}",
        f"- {blocks_of(result)}, seed {result['seed']}, "
        f"{result['size']['bytes']} bytes a transfer, {result['size']['churn_rate']} connections a "
        f"second for {result['size']['churn_seconds']} s, {result['started']}",
        *(f"- {line}" for line in result["versions"].values() if line),
    ]


def markdown(result: dict[str, Any]) -> str:
    return as_markdown(result["command"], facts(result), tables(result), notes(result))


def as_markdown(
    command: str, told: list[str], found: list[tuple[str, Rows]], remarks: list[str]
) -> str:
    lines = [f"<!-- made by `{command}` -->", "", *told]
    for title, rows in found:
        lines += ["", f"**{title}**: {SAYS}", ""]
        lines.append("| " + " | ".join(rows[0]) + " |")
        lines.append("|---" + "|---:" * (len(rows[0]) - 1) + "|")
        lines += ["| " + " | ".join(row) + " |" for row in rows[1:]]
    for remark in remarks:
        lines += [remark, ""] if remark else [""]
    return "\n".join(lines).rstrip() + "\n"
