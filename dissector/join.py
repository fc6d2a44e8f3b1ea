# SPDX-License-Identifier: MIT
"""Joins captures of the local and of the remote proxy: how long each message was under way.

    python -m dissector.join LP.pcap RP.pcap >messages.csv
    python -m dissector.join BOTH.pcapng --format jsonl

Either two captures, one of each end, or one that was merged of both (mergecap -I none), whose
interfaces are the ends. A message is the same one at both ends if session, connection, direction
and number are. It was sent when the sender's capture first has all of it. It came when the
receiver's capture has all of it and all before it on its pipe. Which capture is of which end need
not be told.

The clocks of the two ends differ. Their difference is taken to be such that the quickest message up
and the quickest one down took equally long; `--offset` says it instead.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

SCRIPT = Path(__file__).parent / "tm3.lua"
REASSEMBLE = ("-o", "tcp.reassemble_out_of_order:TRUE")
UP, DOWN = "up", "down"
PERCENTILES = (50, 75, 99)

Row = dict[str, Any]
Key = tuple[int, int, int, str, int]  # session, id, which use of the id, direction, number


class JoinError(RuntimeError):
    """The captures cannot be joined, and why."""


@dataclass(frozen=True)
class End:
    """What one end's capture has: each message once, as it came first."""

    messages: dict[Key, Row]
    pipes: list[Row]


@dataclass(frozen=True)
class Journey:
    """One message, as its sender's capture has it and, if it came, as its receiver's has it."""

    sent: Row
    came: Row | None
    one_way_s: float | None


def tshark(*arguments: str | Path, program: Sequence[str] = ("tshark",)) -> str:
    done = subprocess.run([*program, "-n", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise JoinError(f"tshark: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def read(capture: Path, program: Sequence[str]) -> End:
    lua = ("-X", f"lua_script:{SCRIPT}", "-o", "tm3.content:FALSE", "-o", "tm3.statistics:all")
    told = tshark("-q", "-r", capture, *REASSEMBLE, *lua, program=program)
    statistics, end = json.JSONDecoder().raw_decode(told)
    pipes = statistics["pipes"]
    if not pipes:
        raise JoinError(f"{capture}: no pipes")
    uses: dict[tuple[int, int], list[int]] = defaultdict(list)
    messages: dict[Key, Row] = {}
    for line in told[end:].split("\n")[1:-1]:
        row = json.loads(line)
        use = uses[row["session"], row["id"]]
        if row["connection"] not in use:
            use.append(row["connection"])
        which = use.index(row["connection"])
        key = (row["session"], row["id"], which, row["direction"], row["number"])
        messages.setdefault(key, row)
    return End(messages, pipes)


def same_sessions(one: End, other: End) -> dict[int, int]:
    """The other's number of each session of one: they have a pipe in common. Where an address was
    translated in between none has; then they are taken in their order."""
    theirs = {(pipe["lp"], pipe["rp"]): pipe["session"] for pipe in other.pipes}
    pairs = {
        pipe["session"]: theirs[pipe["lp"], pipe["rp"]]
        for pipe in one.pipes
        if (pipe["lp"], pipe["rp"]) in theirs
    }
    if pairs:
        return pairs
    ours, others = (sorted({pipe["session"] for pipe in end.pipes}) for end in (one, other))
    if len(ours) != len(others):
        raise JoinError("no pipe has the same addresses at both ends, nor is it as many sessions")
    return dict(zip(ours, others, strict=True))


def numbered_as(one: End, other: End) -> End:
    """The other end with the numbers that sessions and pipes have at the one."""
    names = {theirs: ours for ours, theirs in same_sessions(one, other).items()}
    ours = {(pipe["lp"], pipe["rp"]): pipe["pipe"] for pipe in one.pipes}
    pipes = {
        (pipe["session"], pipe["pipe"]): ours.get((pipe["lp"], pipe["rp"]), pipe["pipe"])
        for pipe in other.pipes
    }
    kept = {
        (names[key[0]], *key[1:]): {
            **row, "session": names[key[0]], "pipe": pipes[row["session"], row["pipe"]]
        }
        for key, row in other.messages.items()
        if key[0] in names
    }  # fmt: skip
    return replace(other, messages=kept)


def quickest(lp: End, rp: End) -> dict[str, float]:
    """Of each direction the least time from one capture to the other, by their own clocks."""
    least: dict[str, float] = {}
    for key in lp.messages.keys() & rp.messages.keys():
        way = key[3]
        sender, receiver = (lp, rp) if way == UP else (rp, lp)
        took = receiver.messages[key]["time"] - sender.messages[key]["time"]
        least[way] = min(took, least.get(way, took))
    return least


def ends(one: End, other: End) -> tuple[End, End, dict[str, float]]:
    """LP's, RP's with LP's numbers, and the quickest messages. Up and down together take less than
    no time if the ends are taken for each other, whatever the clocks say."""
    for lp, theirs in ((one, other), (other, one)):
        rp = numbered_as(lp, theirs)
        least = quickest(lp, rp)
        if not least:
            raise JoinError("no message is in both captures")
        if sum(least.values()) >= 0 or len(least) < 2:
            break
    return lp, rp, least


def clock_offset(least: dict[str, float]) -> float:
    """By how much RP's clock is ahead."""
    if len(least) < 2:
        (way,) = least
        raise JoinError(f"all messages in both captures go {way}: say --offset")
    return (least[UP] - least[DOWN]) / 2


def journeys(lp: End, rp: End, offset: float) -> Iterator[Journey]:
    """In the order in which they were sent, by LP's clock."""
    found = []
    for way, sender, receiver, ahead in ((UP, lp, rp, -offset), (DOWN, rp, lp, offset)):
        for key, sent in sender.messages.items():
            if key[3] != way:
                continue
            came = receiver.messages.get(key)
            took = came["time"] - sent["time"] + ahead if came else None
            at = sent["time"] - (offset if sender is rp else 0)
            found.append((at, Journey(sent, came, took)))
    yield from (journey for _, journey in sorted(found, key=lambda each: each[0]))


NAMES = (
    "session", "connection", "id", "direction", "number", "type", "bytes", "destination", "pipe",
    "sent_frame", "came_frame", "sent", "came", "one_way_s", "held_s", "wait_s", "order",
)  # fmt: skip


def row_of(journey: Journey) -> Row:
    """Times are by the clock of the end where they were taken."""
    sent, came = journey.sent, journey.came or {}
    row = {name: sent.get(name) for name in NAMES[:9]}
    row.update(sent_frame=sent["frame"], sent=sent["time"])
    row.update(came_frame=came.get("frame"), came=came.get("time"))
    took = journey.one_way_s
    row.update(one_way_s=None if took is None else round(took, 6))
    for name in ("held_s", "wait_s", "order"):
        row[name] = came.get(name)
    return {name: row[name] for name in NAMES}


def percentile(values: list[float], share: int) -> float:
    """Nearest rank."""
    return sorted(values)[max(0, -(-len(values) * share // 100) - 1)]


def summary(found: Sequence[Journey], offset: float, told: bool) -> Iterator[str]:
    how = "as said" if told else "if the quickest message each way took equally long"
    yield f"RP's clock is {offset * 1000:+.3f} ms ahead of LP's, {how}"
    by_pipe: dict[tuple[int, int, str], list[Journey]] = defaultdict(list)
    for journey in found:
        sent = journey.sent
        by_pipe[sent["session"], sent["pipe"], sent["direction"]].append(journey)
    yield "session pipe direction   sent   came   one way p50 p75 p99 max ms   held max   wait max"
    for (session, pipe, way), those in sorted(by_pipe.items()):
        took = [each.one_way_s * 1000 for each in those if each.one_way_s is not None]
        came = [each.came for each in those if each.came]
        times = [f"{percentile(took, share):.3f}" for share in PERCENTILES] if took else ["-"] * 3
        most = [f"{max(took):.3f}" if took else "-"]
        for name in ("held_s", "wait_s"):
            values = [row[name] * 1000 for row in came if row.get(name) is not None]
            most.append(f"{max(values):.3f}" if values else "-")
        yield (
            f"{session:7} {pipe:4} {way:9} {len(those):6} {len(came):6}   {' '.join(times)} "
            f"{most[0]}   {most[1]}   {most[2]}"
        )


def split(capture: Path, folder: Path, program: Sequence[str]) -> list[Path]:
    """A capture that was merged: one file for each of its two interfaces."""
    told = tshark("-r", capture, "-T", "fields", "-e", "frame.interface_id", program=program)
    numbers = sorted({int(line) for line in told.split()})
    if len(numbers) != 2:
        raise JoinError(
            f"{capture} has {len(numbers)} interfaces, not one of each end: "
            "mergecap -I none keeps them apart"
        )
    parts = []
    for number in numbers:
        part = folder / f"{number}.pcapng"
        chosen = f"frame.interface_id == {number}"
        tshark("-r", capture, "-Y", chosen, "-w", part, program=program)
        parts.append(part)
    return parts


def joined(
    captures: Sequence[Path], offset: float | None, program: Sequence[str] = ("tshark",)
) -> tuple[list[Journey], float]:
    """All messages, and by how much RP's clock is ahead."""
    with tempfile.TemporaryDirectory(prefix="tm3-join-") as folder:
        if len(captures) == 1:
            captures = split(captures[0], Path(folder), program)
        one, other = (read(capture, program) for capture in captures)
    lp, rp, least = ends(one, other)
    ahead = clock_offset(least) if offset is None else offset
    return list(journeys(lp, rp, ahead)), ahead


def write(found: Sequence[Journey], kind: str, out: TextIO) -> None:
    rows = [row_of(journey) for journey in found]
    if kind == "jsonl":
        for row in rows:
            kept = {name: value for name, value in row.items() if value is not None}
            out.write(json.dumps(kept) + "\n")
        return
    writer = csv.DictWriter(out, NAMES, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("captures", type=Path, nargs="+", metavar="CAPTURE")
    parser.add_argument("--format", choices=("csv", "jsonl"), default="csv")
    parser.add_argument("--offset", type=float, help="seconds by which RP's clock is ahead of LP's")
    arguments = parser.parse_args()
    if len(arguments.captures) > 2:
        parser.error("two captures, or one that was merged")
    try:
        found, offset = joined(arguments.captures, arguments.offset)
    except JoinError as why:
        print(f"join: {why}", file=sys.stderr)
        return 1
    write(found, arguments.format, sys.stdout)
    for line in summary(found, offset, arguments.offset is not None):
        print(line, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
