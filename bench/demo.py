# SPDX-License-Identifier: MIT
"""A small demonstration: downloads through 1, 2, 4 and 8 pipes, beside a direct one.

    curl, lp --- last mile (veth) --- rp, nginx

Two network namespaces, gone afterwards. Every file is compared by its SHA-256. The last mile is
shaped with what this kernel has, and the first lines say which that is. `python3 -m bench.demo`
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.relay import payload, records
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.servers import nginx

NEAR, FAR = "10.99.0.1", "10.99.0.2"
PORT = 8080
PIPES = (1, 2, 4, 8)
OBJECTS = 40
OBJECT_BYTES = 20_000
MTU_BYTES = 1514


@dataclass(frozen=True)
class LastMile:
    rate_mbps: int = 50
    rtt_ms: int = 40
    loss_percent: int = 1
    queue_ms: int = 100


@dataclass(frozen=True)
class Row:
    way: str
    big_s: float
    page_s: float
    intact: bool
    pipes: list[records.Record]


def tried(ns: Namespace, *argv: str) -> bool:
    done = subprocess.run(ns.command(argv), capture_output=True, text=True, check=False)
    return done.returncode == 0


def shape(ns: Namespace, device: str, link: LastMile) -> str:
    """Shapes what `ns` sends on `device`, one packet at a time; how that was done."""
    ns.ip("link", "set", device, "gso_max_segs", "1")
    rate = f"{link.rate_mbps}mbit"
    queue_bytes = link.rate_mbps * 125 * link.queue_ms
    add = ("tc", "qdisc", "add", "dev", device, "root")
    netem = (
        *("netem", "delay", f"{link.rtt_ms / 2:g}ms", "loss", f"{link.loss_percent}%"),
        *("rate", rate, "limit", str(queue_bytes // MTU_BYTES + 100)),
    )
    if tried(ns, *add, *netem):
        return f"netem: {rate}, {link.rtt_ms} ms round trip, {link.loss_percent} % loss each way"
    if tried(ns, *add, "tbf", "rate", rate, "burst", "16kb", "limit", str(queue_bytes)):
        return f"tbf: {rate}; no netem in this kernel, so no delay and no loss (where n pipes only tie)"
    return "not shaped: this kernel has neither netem nor tbf"


@contextmanager
def last_mile(link: LastMile) -> Iterator[tuple[Namespace, Namespace, str]]:
    with namespace("near") as near, namespace("far") as far:
        veth(near, f"{NEAR}/24", far, f"{FAR}/24")
        shape(near, "wire-l", link)
        yield near, far, shape(far, "wire-r", link)


def curl(ns: Namespace, out: Path, through: list[str], names: list[str]) -> float:
    """Fetches the files, six connections at a time as browsers do; seconds."""
    argv = ["curl", "-sS", "--fail", "--max-time", "300", "--parallel", "--parallel-max", "6"]
    argv += [*through, "--output-dir", str(out), "--remote-name-all"]
    argv += [f"http://{FAR}:{PORT}/{name}" for name in names]
    started = time.monotonic()
    ns.run(*argv, seconds=320)
    return time.monotonic() - started


def download(
    ns: Namespace, tmp: Path, way: str, through: list[str], wanted: dict[str, str]
) -> tuple[float, float, bool]:
    out = tmp / f"got-{way}"
    out.mkdir()
    big_s = curl(ns, out, through, ["big"])
    page_s = curl(ns, out, through, [name for name in wanted if name != "big"])
    return big_s, page_s, all(payload.file_digest(out / n) == sha for n, sha in wanted.items())


def through_pipes(
    near: Namespace, far: Namespace, tmp: Path, pipes: int, wanted: dict[str, str]
) -> Row:
    tmp = tmp / f"{pipes}-pipes"
    tmp.mkdir()
    stats = tmp / "rp.jsonl"
    with (
        remote_proxy(far, tmp, "--cc", "cubic", "--stats", str(stats), pipes=pipes, asan=False),
        local_proxy(near, tmp, "--cc", "cubic", to=FAR, pipes=pipes, asan=False),
    ):
        timed = download(near, tmp, f"{pipes}", ["--socks5", "127.0.0.1:1080"], wanted)
    return Row(f"{pipes} pipe{'s' if pipes > 1 else ''}", *timed, records.last_of_pipes(stats))


def print_rows(rows: list[Row], big_bytes: int) -> None:
    print(f"\n{'':9} {'one file':>9} {'':>7} {'the page':>9}   bytes")
    for row in rows:
        print(
            f"{row.way:9} {row.big_s:7.2f} s {big_bytes / 1e6 / row.big_s:5.2f} MB/s"
            f" {row.page_s:5.2f} s   {'all the same' if row.intact else 'DIFFERENT'}"
        )
    print("\nwhat each of rp's pipes carried (MB, share, retransmitted segments, round trip):")
    for row in rows:
        total = sum(pipe["tx_bytes"] for pipe in row.pipes)
        for pipe in row.pipes:
            head = row.way if pipe["pipe"] == 0 else ""
            print(
                f"{head:9} pipe {pipe['pipe']}: {pipe['tx_bytes'] / 1e6:6.2f} MB"
                f" {100 * pipe['tx_bytes'] / total:5.1f} % {pipe['retransmits']:5} retr."
                f" {pipe['rtt_ms']:7.2f} ms"
            )


def demonstrate(link: LastMile, big_bytes: int) -> bool:
    with (
        tempfile.TemporaryDirectory(prefix="tm3-demo-") as folder,
        last_mile(link) as (near, far, how),
    ):
        tmp = Path(folder)
        root = tmp / "root"
        root.mkdir()
        wanted = {"big": payload.write(root / "big", big_bytes)}
        for n in range(OBJECTS):
            wanted[f"object-{n}"] = payload.write(root / f"object-{n}", OBJECT_BYTES, seed=n)
        print(f"last mile   {how}")
        print(f"downloads   one file of {big_bytes / 1e6:g} MB; a page of {OBJECTS} objects of"
              f" {OBJECT_BYTES / 1000:g} kB, six at a time")  # fmt: skip
        rows = []
        with nginx(far, tmp, root, port=PORT, address=FAR):
            rows.append(Row("direct", *download(near, tmp, "direct", [], wanted), []))
            for pipes in PIPES:
                print(f"running     {pipes} ...", flush=True)
                rows.append(through_pipes(near, far, tmp, pipes, wanted))
        print_rows(rows, big_bytes)
        return all(row.intact for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=20, help="size of the file (20)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("demo: needs root for network namespaces: sudo make demo", file=sys.stderr)
        return 1
    return 0 if demonstrate(LastMile(), options.megabytes * 1_000_000) else 1


if __name__ == "__main__":
    sys.exit(main())
