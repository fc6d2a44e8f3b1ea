# SPDX-License-Identifier: MIT
"""tm3lab oracle: what objects over several paths could take at best, and what policies make of it.

Nothing is run: the answers are computed (experiments/oracle/).
"""

import argparse
from collections.abc import Sequence
from typing import Any

from experiments import parameters
from experiments.oracle import optimum
from experiments.oracle.fluid import QUANTUM, Message, simulate
from experiments.oracle.path import OracleError, Path, nearest_first
from topologies.parameter import Parameter, ParameterError

POLICIES = "minrtt,rr,txdelay,ecf,one,copies"
PATH_FORM = "NAME,MBPS,MS[,RTT_MS]"
_SIZE = Parameter("size", 0, "size", "bytes of an object", low=1)
EPILOG = f"""\
  tm3lab oracle --path wifi,7.04,25 --path lte,9.185,135 --size 64KiB,256KiB,1MiB
  tm3lab oracle --path a,1.6,5 --path b,4,10 --size 900B,800B --batch --connections rr --quantum 150

A path is {PATH_FORM}: its name, its rate, its delay one way, its round trip where
that is not twice the delay.
"""


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "oracle",
        usage=f"tm3lab oracle --path {PATH_FORM}... --size SIZE[,SIZE]... [OPTION]...",
        help="what objects over several paths take at best, and by policies, computed",
        description="Completion times of objects over paths that are constant and lose nothing.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--path", action="append", default=[], metavar=PATH_FORM)
    parser.add_argument("--size", default="64KiB,256KiB,1MiB", metavar="SIZE[,SIZE]...")
    parser.add_argument(
        "--policies", default=POLICIES, metavar="LIST", help=f"of paths ({POLICIES})"
    )
    parser.add_argument(
        "--connections", default="srpt", metavar="POLICY", help="fcfs, rr or srpt (srpt)"
    )
    parser.add_argument(
        "--batch", action="store_true", help="the sizes are one batch, not one object each"
    )
    parser.add_argument(
        "--quantum", default=str(QUANTUM), metavar="SIZE", help=f"of a turn of rr ({QUANTUM})"
    )
    parser.set_defaults(do=show)


def show(given: argparse.Namespace) -> int:
    try:
        print(_answer(given))
    except OracleError as wrong:
        raise ParameterError("oracle", str(wrong)) from None
    return 0


def _answer(given: argparse.Namespace) -> str:
    paths = nearest_first([path_of(text) for text in given.path])
    sizes = [size_of(text) for text in given.size.split(",")]
    quantum = size_of(given.quantum)
    policies = given.policies.split(",")
    batches = [sizes] if given.batch else [[size] for size in sizes]
    columns = [
        [
            simulate(paths, [Message(it) for it in batch], given.connections, policy, quantum)
            for batch in batches
        ]
        for policy in policies
    ]
    rows = [["bytes", "optimum ms", *(f"{it} ms" for it in policies)]]
    for b, batch in enumerate(batches):
        best = _best(paths, batch)
        for m, size in enumerate(batch):
            times = [column[b].times[m] for column in columns]
            rows.append([f"{size:.0f}", *(f"{it * 1e3:.3f}" for it in (best[m], *times))])
    return f"{table(_of_paths(paths))}\n\n{table(rows)}"


def _best(paths: Sequence[Path], batch: Sequence[float]) -> list[float]:
    """Of one object the optimum; of a batch the times of SRPT-ECF, which no schedule is below."""
    return simulate(paths, [Message(it) for it in batch], "srpt", "ecf").times


def _of_paths(paths: Sequence[Path]) -> list[list[str]]:
    grown, fresh = optimum.thresholds(paths), optimum.fresh_thresholds(paths)
    rows = [["path", "Mbit/s", "ms one way", "worth using above", "with fresh windows"]]
    for it in paths:
        told = f"{it.rate * 8e-6:g}", f"{it.delay * 1e3:g}"
        rows.append([it.name, *told, f"{grown[it.name]:.0f} B", f"{fresh[it.name]:.0f} B"])
    return rows


def path_of(text: str) -> Path:
    name, *numbers = text.split(",")
    if not name or len(numbers) not in (2, 3):
        raise OracleError(f"path {text!r} is not {PATH_FORM}")
    try:
        rate, *times = map(float, numbers)
    except ValueError:
        raise OracleError(f"path {text!r}: rate and times are numbers, {PATH_FORM}") from None
    return Path(name, rate * 1e6 / 8, *(it / 1e3 for it in times))


def size_of(text: str) -> float:
    """Bytes, or with a unit as everywhere: KB is 1000, KiB 1024."""
    size = parameters.read(_SIZE, text)
    assert isinstance(size, int)
    return size


def table(rows: Sequence[Sequence[str]]) -> str:
    """Words of the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join(cells))
    return "\n".join(lines)
