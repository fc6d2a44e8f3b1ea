# SPDX-License-Identifier: MIT
"""What a redirected connection costs, by nftables, by tm3ctl --bpf, and by tm3.ko where it can be.

    make bench-redirect        python -m tests.bpf.measure

Interleaved, in random order, in one run and one network namespace. The place of lp takes a program
that accepts, asks where the connection wanted, and echoes (connects.c). Three figures for each way:

    connect       a redirected connection, with one byte there and back
    round trip    one byte more on a redirected connection
    others        a connection that nobody redirects, while others' are

in microseconds of processor time of both ends, median of the blocks, with their quartiles. And how
many such connections there were in a second, which others on this machine make fewer.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bpf.road import RP, TM3BPF, TM3CTL
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.programs import BUILD
from tests.relay.waiting import until

CONNECTS = BUILD / "bpf" / "connects"
LP_PORT, SERVER_PORT, OTHER_PORT = 6003, 80, 7000
WAYS = ("none", "nftables", "bpf", "module")
MEASURES = ("connect", "round trip", "others")
EACH_SECOND = "connects a second"


def tm3ctl(ns: Namespace, *words: str | Path) -> list[str]:
    return ns.command([TM3CTL, *words])


def finished(argv: Sequence[str | Path]) -> str:
    environ = {**os.environ, "TM3_BPF": str(TM3BPF)}
    done = subprocess.run(argv, capture_output=True, text=True, env=environ)
    if done.returncode:
        sys.exit(f"measure: {argv[-6:]}: {done.stderr}")
    return done.stdout


@contextmanager
def redirecting(ns: Namespace, way: str) -> Iterator[list[str]]:
    """What stands in front of a program whose connections are redirected."""
    if way in ("nftables", "module"):
        finished(tm3ctl(ns, "--with", way, RP, "wire-l", str(SERVER_PORT)))
        yield ns.command([])
        finished(tm3ctl(ns, "off"))
    elif way == "bpf":
        yield tm3ctl(ns, "--bpf", str(SERVER_PORT), "--")
    else:
        yield ns.command([])


def measured(ns: Namespace, way: str, measure: str, number: int) -> tuple[float, float]:
    """Microseconds of processor time for one, and how many there were in a second."""
    rounds = number if measure == "round trip" else 1
    connects = number // rounds
    with redirecting(ns, way) as before, ExitStack() as stack:
        if way == "none" or measure == "others":
            lp_port = OTHER_PORT
            where = ("127.0.0.1", OTHER_PORT)
            if way == "bpf":  # others are outside of the command's cgroup
                held = [*before, "sleep", "infinity"]
                process = stack.enter_context(subprocess.Popen(held, stderr=subprocess.DEVNULL))
                stack.callback(process.kill)
                until("--bpf to redirect", lambda: " redirects " in finished(tm3ctl(ns, "status")))
                before = ns.command([])
        else:
            lp_port, where = LP_PORT, (RP, SERVER_PORT)
        argv = [*before, CONNECTS, lp_port, *where, connects, rounds]
        told = json.loads(finished([str(word) for word in argv]))
    if where[1] == SERVER_PORT and told["known"] != connects:
        sys.exit(f"measure: {way}: {told['known']} of {connects} destinations were known")
    return told["cpu"] / number * 1e6, number / told["seconds"]


def table(found: dict[tuple[str, str], list[float]], ways: list[str]) -> Iterator[str]:
    columns = [it for it in (*MEASURES, EACH_SECOND) if (ways[0], it) in found]
    yield "| | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for way in ways:
        cells = []
        for column in columns:
            low, middle, high = statistics.quantiles(found[way, column], n=4)
            digits = 0 if column == EACH_SECOND else 1
            cells.append(f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})")
        yield f"| {way} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="measure", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ways", default="none,nftables,bpf", help="of none,nftables,bpf,module")
    parser.add_argument("--only", default=",".join(MEASURES), help=f"of {', '.join(MEASURES)}")
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--number", type=int, default=1500, help="in one block")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    ways = options.ways.split(",")
    dice = random.Random(options.seed)
    measures = options.only.split(",")
    cells = [(way, measure) for way in ways for measure in measures]
    found: dict[tuple[str, str], list[float]] = {}
    with namespace("near") as near, namespace("far") as far:
        veth(near, "10.77.0.1/24", far, f"{RP}/24")
        for _ in range(options.blocks):
            for way, measure in dice.sample(cells, len(cells)):
                took_us, each_second = measured(near, way, measure, options.number)
                found.setdefault((way, measure), []).append(took_us)
                if measure == "connect":
                    found.setdefault((way, EACH_SECOND), []).append(each_second)
    print("\n".join(table(found, ways)))


if __name__ == "__main__":
    main()
