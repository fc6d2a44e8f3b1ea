# SPDX-License-Identifier: MIT
"""From single figures to tables: for a terminal, and as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.ramp.cases import DIRECT, KINDS, TITLES, WAYS, Case
from bench.ramp.measure import ASKER, BELOW, metrics
from bench.report import (
    Rows,
    as_markdown,
    as_text,
    cell,
    disturbance,
    without_empty_columns,
)

NAMES = {"udp": "UDP", "tcp": "TCP", "tls": "TLS"}
SERVERS = ("unbound", "bare")
PIPES_OF_BOUND = "4"
GROWTH_MOST = 1.5
KIB_MOST = 4.0


class Values:
    """Metrics of cases, by block."""

    def __init__(self, figures: Sequence[dict[str, Any]]) -> None:
        self._found: dict[tuple[Case, str], dict[int, float]] = {}
        for figure in figures:
            case = Case(figure["kind"], figure["way"], figure["connections"])
            for metric, value in metrics(figure).items():
                self._found.setdefault((case, metric), {})[figure["block"]] = value
        self.connections = sorted({figure["connections"] for figure in figures})

    def of(self, case: Case, *of: str) -> Mapping[int, float]:
        """The first of these metrics that there is."""
        return next((self._found[case, it] for it in of if (case, it) in self._found), {})

    def ratio(self, one: Case, other: Case, metric: str) -> dict[int, float]:
        """By block, where there are both."""
        return quotients(self.of(one, metric), self.of(other, metric))


def quotients(ones: Mapping[int, float], others: Mapping[int, float]) -> dict[int, float]:
    return {block: ones[block] / others[block] for block in sorted(ones) if others.get(block)}


def shown(found: Mapping[int, float], digits: int) -> str:
    return cell(list(found.values()), digits)


def case_rows(kind: str, values: Values) -> Rows:
    """What there is of a kind."""
    columns: tuple[tuple[str, int, tuple[str, ...]], ...] = (
        ("peak, queries/s", 0, ("peak",)),
        ("p50 ms", 2, ("p50",)),
        ("p95 ms", 2, ("p95",)),
        ("server µs", 1, tuple(f"cpu.{it}" for it in SERVERS)),
        ("rp µs", 1, ("cpu.rp",)),
        ("lp µs", 1, ("cpu.lp",)),
        ("asker µs", 1, (f"cpu.{ASKER}",)),
        ("server KiB", 2, tuple(f"kib.{it}" for it in SERVERS)),
        ("rp KiB", 2, ("kib.rp",)),
        ("lp KiB", 2, ("kib.lp",)),
    )
    rows = [["", "connections", *(title for title, _, _ in columns)]]
    for way in WAYS:
        for connections in values.connections:
            case = Case(kind, way, connections)
            if not values.of(case, "peak", "p50", f"cpu.{ASKER}"):
                continue
            cells = [shown(values.of(case, *of), digits) for _, digits, of in columns]
            rows.append([TITLES[way], f"{connections:,}", *cells])
    return without_empty_columns(rows)


def share_rows(kind: str, values: Values) -> Rows:
    """Peaks divided by that of unbound alone, block by block."""
    rows = [["", *(f"{it:,} connections" for it in values.connections)]]
    for way in WAYS:
        if way != DIRECT:
            pairs = [(Case(kind, way, it), Case(kind, DIRECT, it)) for it in values.connections]
            rows.append([TITLES[way], *(shown(values.ratio(*pair, "peak"), 2) for pair in pairs)])
    return [rows[0], *(row for row in rows[1:] if set(row[1:]) != {"-"})]


def growth_rows(values: Values) -> Rows:
    """Processor time of a query with most connections divided by that with fewest."""
    roles = ("unbound", "rp", "lp")
    rows = [["", *roles]]
    for kind in KINDS:
        for way in WAYS[1:]:
            cells = [shown(growth(values, kind, way, role), 2) for role in roles]
            if set(cells) != {"-"}:
                rows.append([f"{NAMES[kind]}, {TITLES[way]}", *cells])
    return without_empty_columns(rows)


def growth(values: Values, kind: str, way: str, role: str) -> dict[int, float]:
    few, many = values.connections[0], values.connections[-1]
    return values.ratio(Case(kind, way, many), Case(kind, way, few), f"cpu.{role}")


def published_rows(values: Values) -> Rows:
    """What one published measurement of unbound on one core found, and what was found here."""
    few, many = values.connections[0], values.connections[-1]

    def peaks(one: str, other: str, connections: int) -> str:
        pair = Case(one, DIRECT, connections), Case(other, DIRECT, connections)
        return shown(values.ratio(*pair, "peak"), 2)

    direct = [Case(kind, DIRECT, it) for kind in KINDS for it in values.connections]
    peaks_found = [case for case in direct if values.of(case, "peak")]
    slow = [it for case in peaks_found for it in values.of(case, "p95").values()]
    rows = [
        ["", "published", "here"],
        [f"peak of TCP by that of UDP, {few:,} connections", "0.70", peaks("tcp", "udp", few)],
        [f"the same, {many:,} connections", "0.25", peaks("tcp", "udp", many)],
        [
            f"peak of TLS by that of TCP, {few:,} connections",
            "0.55..0.70",
            peaks("tls", "tcp", few),
        ],
        [f"the same, {many:,} connections", "0.55..0.70", peaks("tls", "tcp", many)],
        ["p95 at 0.8 of the peak, the longest, ms", "<20", f"{max(slow):.2f}" if slow else "-"],
        [
            "KiB of unbound with room for two TCP connections (published: one, with the kernel's)",
            "7.5",
            shown(slot(values, few, many), 2),
        ],
    ]
    return [row for row in rows if row[-1] != "-"]


def slot(values: Values, few: int, many: int) -> dict[int, float]:
    """By what unbound takes with room for many and for few: it takes it when it starts."""
    large, small = (values.of(Case("tcp", DIRECT, it), "all.unbound") for it in (many, few))
    return {it: (large[it] - small[it]) / (many - few) for it in large if it in small}


def bound_rows(values: Values) -> Rows:
    """What was asked of the proxies beforehand, over TCP and 4 pipes."""
    few, many = values.connections[0], values.connections[-1]
    case = Case("tcp", PIPES_OF_BOUND, many)
    grown = growth(values, "tcp", PIPES_OF_BOUND, "rp")
    alone = growth(values, "tcp", DIRECT, "unbound")
    checks: list[tuple[str, Mapping[int, float], float]] = [
        (f"rp's µs a query, {many:,} connections by {few:,}", grown, GROWTH_MOST),
        ("the same, by unbound's own growth", quotients(grown, alone), 1.0),
        ("KiB of rp for a connection", values.of(case, "kib.rp"), KIB_MOST),
        ("KiB of lp for a connection", values.of(case, "kib.lp"), KIB_MOST),
    ]
    rows = [["", "at most", "here", ""]]
    for what, found, most in checks:
        if found:
            verdict = "holds" if max(found.values()) <= most else "not decided"
            verdict = "does not hold" if min(found.values()) > most else verdict
            rows.append([what, f"{most:g}", shown(found, 2), verdict])
    return rows


def tables(result: dict[str, Any]) -> list[tuple[str, Rows]]:
    values = Values(result["figures"])
    rate = result["pace"].get("rate")
    at = f"at {rate:g} queries a second" if rate else f"peak, and at {BELOW:g} of it"
    found: list[tuple[str, Rows]] = [
        (f"{NAMES[kind]}: {at} times and processor time of a query", case_rows(kind, values))
        for kind in KINDS
    ]
    found += [
        (f"{NAMES[kind]}: peak divided by that of unbound alone, block by block", rows)
        for kind in KINDS
        for rows in [share_rows(kind, values)]
    ]
    if len(values.connections) > 1:
        few, many = values.connections[0], values.connections[-1]
        title = f"Processor time of a query, {many:,} connections by {few:,}, block by block"
        found += [
            (title, growth_rows(values)),
            ("Beside what was published of unbound", published_rows(values)),
            ("Asked of the proxies", bound_rows(values)),
        ]
    return [(title, rows) for title, rows in found if len(rows) > 1]


def notes(result: dict[str, Any]) -> list[str]:
    figures = result["figures"]
    behind = sorted({name(it) for it in figures if it.get("asked") is False})
    lines = ["", disturbance(figures)]
    if behind:
        lines.append(f"Limited by who asks, so at least as high: {'; '.join(behind)}.")
    lines += [f"Not measured: {case}: {why}." for case, why in result["missing"].items()]
    lines += [f"Failed: {name(it)}: {it['failed']}." for it in figures if "failed" in it]
    return lines


def name(figure: dict[str, Any]) -> str:
    return str(Case(figure["kind"], figure["way"], figure["connections"]))


def facts(result: dict[str, Any]) -> list[str]:
    machine, pace = result["machine"], result["pace"]
    return [
        f"- {machine['cpu']}, {len(machine['processors_used'])} cores used, "
        f"Linux {machine['kernel']}, {result['control']}",
        f"- {result['blocks']} blocks, seed {result['seed']}, {pace['step_s']:g} s a rate, "
        f"{pace['hold_s']:g} s held, {result['started']}",
        *(
            f"- {line if name in line else f'{name}: {line}'}"
            for name, line in result["versions"].items()
            if line
        ),
    ]


def text(result: dict[str, Any]) -> str:
    return as_text(tables(result), notes(result))


def markdown(result: dict[str, Any]) -> str:
    return as_markdown(result["command"], facts(result), tables(result), notes(result))
