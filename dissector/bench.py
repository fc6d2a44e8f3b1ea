# SPDX-License-Identifier: MIT
"""Times tshark with the dissector and without it, on the same capture, and prints the ratios.

    python -m dissector.bench [--megabytes 200] [--rounds 1] [--capture FILE]

Without it, Wireshark takes port 6000 for X11 and reads the pipes as that. So there is a second,
stricter measure to stand beside: the same with X11 disabled, where tshark only does TCP and
none of what the pipes carry.
CPU seconds (user and system) of whole runs, taken in turns; the median counts. The ratio to the
first is to stay under 4: the exit status says whether it did.
"""

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.dissector import messages as m
from tests.dissector.packets import ACK, Capture, Endpoint, TcpStream

SCRIPT = Path(__file__).parent / "tm3.lua"
LIMIT = 4.0
BODY = 1_000_000
PIPES, CONNECTIONS = 4, 16

VARIANTS: dict[str, list[str]] = {
    "without": [],
    "without, X11 off": ["--disable-protocol", "x11"],
    "with": ["-X", f"lua_script:{SCRIPT}"],
    "with, content off": ["-X", f"lua_script:{SCRIPT}", "-o", "tm3.content:FALSE"],
}


def make_capture(path: Path, megabytes: int) -> None:
    """Downloads of 1 MB over HTTP, sixteen at a time, over four pipes, reordered among them."""
    rng, capture = random.Random(1), Capture()
    pipes = [
        TcpStream(capture, Endpoint("10.7.0.1", 40_000 + n), Endpoint("10.9.0.1", 6000))
        for n in range(PIPES)
    ]
    for number, pipe in enumerate(pipes):
        pipe.open(number * 10)
    body = rng.randbytes(BODY)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\nContent-Type: application/x-any\r\n\r\n"
    answer = head.encode() + body
    time_us, total, conn = 1000, 0, 0
    while total < megabytes * 1_000_000:
        batch = []
        for _ in range(CONNECTIONS):
            conn = conn % 32767 + 1
            request = f"GET /object/{conn} HTTP/1.1\r\nHost: www.example.org\r\n\r\n".encode()
            pipes[conn % PIPES].up(time_us, m.syn(conn, "192.0.2.1", 80) + m.data(conn, 1, request))
            time_us += 10
            batch.append((conn, iter(range(0, len(answer), 1440))))
        number = 0
        while batch:
            group = []
            for each, parts in list(batch):
                start = next(parts, None)
                if start is None:
                    batch.remove((each, parts))
                    group.append(m.fin(each, number))
                else:
                    group.append(m.data(each, number, answer[start : start + 1440]))
            number += 1
            rng.shuffle(group)
            for raw in group:
                pipe = pipes[rng.randrange(PIPES)]
                pipe.down(time_us, raw)
                time_us += 12
                total += len(raw) + 54
                if rng.random() < 0.5:
                    pipe.up(time_us, b"", ACK)
    capture.write(path)


def cpu_s(capture: Path, arguments: list[str]) -> float:
    """CPU seconds of one run, in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="tm3-bench-") as home:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["env", f"HOME={home}", f"XDG_CONFIG_HOME={home}", "tshark", "-n"]
        command += ["-o", "tcp.reassemble_out_of_order:TRUE", "-r", str(capture), *arguments]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description="Times the dissector beside tshark without it.")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--capture", type=Path, help="time this one, instead of one made for it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tm3-bench-") as folder:
        capture = arguments.capture or Path(folder) / "big.pcap"
        if not arguments.capture:
            make_capture(capture, arguments.megabytes)
        print(f"{capture.stat().st_size / 1e6:.0f} MB, CPU seconds of {arguments.rounds} rounds")
        seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
        for _ in range(arguments.rounds):
            for name, options in VARIANTS.items():
                seconds[name].append(cpu_s(capture, options))
    median = {name: statistics.median(values) for name, values in seconds.items()}
    for name, values in seconds.items():
        ratios = [f"{median[name] / median[base]:5.2f}" for base in list(VARIANTS)[:2]]
        print(f"{name:20} {median[name]:7.2f} s  ratio {ratios[0]}, to X11 off {ratios[1]}  "
              f"({min(values):.2f} to {max(values):.2f})")  # fmt: skip
    ratio = median["with"] / median["without"]
    print(f"{ratio:.2f} times tshark without the dissector; {LIMIT:g} is the limit")
    return 0 if ratio < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
