# SPDX-License-Identifier: MIT
"""A small demonstration: downloads through 1, 2, 4 and 8 pipes, beside a direct one.

    curl, lp --- last mile (veth) --- rp, nginx

Two network namespaces, gone afterwards. Every file is compared by its SHA-256. The last mile is
shaped by the kernel's netem or else by our own emulator, and the first line says by which. Each
figure is of one run: an illustration, no measurement. `sudo make demo`
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
from tests.relay.programs import binary, program
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.servers import nginx
from tests.relay.waiting import until

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


def netem(ns: Namespace, device: str, link: LastMile) -> None:
    """Shapes what `ns` sends on `device`, one packet at a time."""
    queue_packets = link.rate_mbps * 125 * link.queue_ms // MTU_BYTES
    delay_packets = link.rate_mbps * 125 * link.rtt_ms // MTU_BYTES
    ns.ip("link", "set", device, "gso_max_segs", "1")
    ns.run(
        *("tc", "qdisc", "add", "dev", device, "root", "netem"),
        *("delay", f"{link.rtt_ms / 2:g}ms", "loss", f"{link.loss_percent}%"),
        *("rate", f"{link.rate_mbps}mbit", "limit", str(queue_packets + delay_packets)),
    )


def cubic(ns: Namespace, device: str, peer: str) -> None:
    """All of the measurement uses one congestion control, whatever the kernel's default is."""
    ns.ip("route", "replace", f"{peer}/32", "dev", device, "congctl", "cubic")


def kernel_has_netem(ns: Namespace) -> bool:
    argv = ns.command(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "0ms"])
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@contextmanager
def emulated(near: Namespace, far: Namespace, tmp: Path, link: LastMile) -> Iterator[None]:
    """The same by our own emulator, a program between two TAP devices."""
    each_way = (
        f"rate_mbps={link.rate_mbps} delay_ms={link.rtt_ms / 2:g} queue_ms={link.queue_ms}"
        f" loss={link.loss_percent / 100:g}"
    )
    ends = ((near, "linkem-a", f"{NEAR}/24"), (far, "linkem-b", f"{FAR}/24"))
    argv = [binary("linkem", asan=False), "--a", near.path, "--b", far.path, "--both", each_way]
    with program(near, argv, tmp / "linkem.log", name="linkem"):
        for ns, device, address in ends:
            until(f"{device} to be there", lambda n=ns, d=device: d in n.ip("link"))
            ns.ip("address", "add", address, "dev", device)
            ns.ip("link", "set", device, "up")
        cubic(far, "linkem-b", NEAR)
        yield


@contextmanager
def last_mile(link: LastMile, tmp: Path) -> Iterator[tuple[Namespace, Namespace, str]]:
    with namespace("near") as near, namespace("far") as far:
        shape = (
            f"{link.rate_mbps} Mbit/s, {link.rtt_ms} ms round trip, {link.loss_percent} % loss"
            f" each way, a queue of {link.queue_ms} ms"
        )
        if kernel_has_netem(near):
            veth(near, f"{NEAR}/24", far, f"{FAR}/24")
            netem(near, "wire-l", link)
            netem(far, "wire-r", link)
            cubic(far, "wire-r", NEAR)
            yield near, far, f"{shape}; by the kernel's netem"
        else:
            with emulated(near, far, tmp, link):
                yield near, far, f"{shape}; by linkem, since this kernel has no netem"


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
        last_mile(link, Path(folder)) as (near, far, how),
    ):
        tmp = Path(folder)
        root = tmp / "root"
        root.mkdir()
        wanted = {"big": payload.write(root / "big", big_bytes)}
        for n in range(OBJECTS):
            wanted[f"object-{n}"] = payload.write(root / f"object-{n}", OBJECT_BYTES, seed=n)
        print(f"last mile   {how}; cubic")
        print(f"downloads   one file of {big_bytes / 1e6:g} MB; a page of {OBJECTS} objects of"
              f" {OBJECT_BYTES / 1000:g} kB, six at a time")  # fmt: skip
        rows = []
        with nginx(far, tmp, root, port=PORT, address=FAR):
            rows.append(Row("direct", *download(near, tmp, "direct", [], wanted), []))
            for pipes in PIPES:
                print(f"running     {pipes} ...", flush=True)
                rows.append(through_pipes(near, far, tmp, pipes, wanted))
        print_rows(rows, big_bytes)
        print("\none run each: an illustration, no measurement")
        return all(row.intact for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=5, help="size of the file (5)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("demo: needs root for network namespaces: sudo make demo", file=sys.stderr)
        return 1
    return 0 if demonstrate(LastMile(), options.megabytes * 1_000_000) else 1


if __name__ == "__main__":
    sys.exit(main())
