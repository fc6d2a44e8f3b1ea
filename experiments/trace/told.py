# SPDX-License-Identifier: MIT
"""Findings in words and as JSON."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.report import words
from experiments.trace.bursts import DOWN, GAP_NS, UP
from experiments.trace.capture import SECOND, Capture
from experiments.trace.distribution import Distribution
from experiments.trace.findings import RATED_NS, UPLOADS, VOLUMES, WAYS, Findings, Kind
from experiments.trace.packet import SKIPPED
from experiments.trace.slots import SLOT_NS, TRIVIAL
from experiments.trace.trace import IDLE_NS, Trace

FORMAT = 1
CONSTANTS = {
    "idle_s": IDLE_NS / SECOND,
    "gap_s": GAP_NS / SECOND,
    "rated_s": RATED_NS / SECOND,
    "slot_s": SLOT_NS / SECOND,
    "trivial_bytes": TRIVIAL,
}
Read = Sequence[tuple[Capture, Trace]]


def data(read: Read, found: Findings) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "constants": CONSTANTS,
        "files": [_file(*each) for each in read],
        "sessions": {
            "seconds": found.lengths().data(),
            "bytes_up": found.volumes(UP).data(),
            "bytes_down": found.volumes(DOWN).data(),
            "bytes": found.volumes(UP, DOWN).data(),
        },
        "kinds": {kind.name: _kind(kind) for kind in found.kinds},
    }


def _file(capture: Capture, trace: Trace) -> dict[str, Any]:
    flows = list(trace.flows())
    return {
        "name": capture.path.name,
        "bytes": capture.read,
        "packets": trace.packets,
        "packets_cut": trace.cut,
        "packets_udp": trace.udp_packets,
        "packets_skipped": dict(trace.skipped),
        "packets_earlier": trace.earlier,
        "ends_within_a_packet": capture.is_cut,
        "sessions": len(trace.sessions),
        "flows": len(flows),
        "client_found_by": dict(Counter(it.found for it in flows)),
    }


def _kind(it: Kind) -> dict[str, Any]:
    def ways(of: Any) -> dict[str, Any]:
        return {name: of(way) for way, name in WAYS.items()}

    return {
        "flows": len(it.flows),
        "packets": ways(lambda way: sum(flow.packets[way] for flow in it.flows)),
        "wire_bytes": ways(lambda way: sum(flow.wire[way] for flow in it.flows)),
        "payload_bytes": ways(lambda way: sum(flow.payload[way] for flow in it.flows)),
        "packets_again_up": sum(flow.trips.again for flow in it.flows),
        "bursts": ways(lambda way: sum(flow.bursts.count[way] for flow in it.flows)),
        "bursts_of_a_flow": ways(
            lambda way: Distribution(flow.bursts.count[way] for flow in it.flows).data()
        ),
        "duration_s": ways(
            lambda way: {
                "all": it.durations(way).data(),
                **{name: it.durations(way, volume).data() for name, volume in VOLUMES.items()},
            }
        ),
        "rate_mbps": ways(lambda way: it.rates(way).data()),
        "slots_by_busy_flows": {str(n): slots for n, slots in sorted(it.busy.items()) if slots},
        "share_of_slots_with_two": it.concurrent(),
        "handshake_s": it.handshakes().data(),
        "least_round_trip_s": it.least_trips().data(),
        "round_trip_samples": sum(flow.trips.count for flow in it.flows),
        "increase_s": {
            "all": it.increases().data(),
            **{name: it.increases(upload).data() for name, upload in UPLOADS.items()},
        },
    }


def text(read: Read, found: Findings) -> str:
    lines = [line for each in read for line in _file_lines(*each)]
    if not found.sessions:
        return "\n".join([*lines, "no packet of TCP or UDP in it"])
    lines.append("")
    rows = [
        ("session, s", found.lengths()),
        ("session, bytes up", found.volumes(UP)),
        ("session, bytes down", found.volumes(DOWN)),
    ]
    for kind in found.kinds:
        rows += [(f"{kind.name}: {name}", values) for name, values in _rows(kind).items()]
    rows = [(name, values) for name, values in rows if len(values)]
    wide = max(len(name) for name, _ in rows)
    lines.append(f"{'':<{wide}} {'count':>9} {'5 %':>9} {'median':>9} {'95 %':>9} {'99 %':>9}")
    for name, values in rows:
        cells = [words.number(values.quantile(it)) for it in (5, 50, 95, 99)]
        lines.append(f"{name:<{wide}} {len(values):>9} " + " ".join(f"{it:>9}" for it in cells))
    lines.append("")
    for kind in found.kinds:
        share = kind.concurrent()
        if share is not None:
            lines.append(
                f"{kind.name}: two or more carry data in {share:.1%} of {kind.busy.total()} seconds"
            )
    return "\n".join(lines)


def _file_lines(capture: Capture, trace: Trace) -> list[str]:
    flows = len(list(trace.flows()))
    lines = [
        f"{capture.path}: {words.count(trace.packets, 'packet')}, "
        f"{words.count(flows, 'TCP connection')}, {words.count(len(trace.sessions), 'session')}"
    ]
    remarks: Mapping[str, int] = {
        **{f"left out: {SKIPPED[why]}": count for why, count in trace.skipped.items()},
        "with a time before that of the packet in front; taken as of the same time": trace.earlier,
    }
    lines += [f"  {words.count(count, 'packet')} {why}" for why, count in remarks.items() if count]
    if capture.is_cut:
        lines.append("  the file ends within a packet: it was cut short")
    return lines


def _rows(kind: Kind) -> dict[str, Distribution]:
    return {
        "duration up, s": kind.durations(UP),
        "duration down, s": kind.durations(DOWN),
        "rate up, Mbit/s": kind.rates(UP),
        "rate down, Mbit/s": kind.rates(DOWN),
        "handshake, ms": kind.handshakes().times(1000),
        "least round trip, ms": kind.least_trips().times(1000),
        "I(s), ms": kind.increases().times(1000),
    }
