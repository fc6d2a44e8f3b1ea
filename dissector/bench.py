# SPDX-License-Identifier: MIT
"""Times tshark with the dissector and without it, on the same capture, and prints the ratios.

    python -m dissector.bench [--megabytes 200] [--rounds 1] [--limit 60] [--capture FILE]
    python -m dissector.bench --messages 100000 [--together 24]

The measure is tshark without the dissector and with X11 disabled: it does TCP and looks at
nothing that the pipes carry. As it comes, Wireshark takes port 6000 for X11 and reads the pipes as
that, which takes very long: such a run is stopped after `--limit` CPU seconds. For comparison there
is the same payload as plain HTTP, one TCP connection for each of the connections of the pipes: what
Wireshark's own dissectors, all in C, take for what is inside. With `--messages` the capture is of
as many of 10 to 60 bytes, `--together` of them a segment, of a protocol nobody knows.
CPU seconds (user and system) of whole runs, taken in turns; the median counts. The ratio is to stay
under 4: the exit status says whether it did.
"""

import argparse
import random
import resource
import signal
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
PART = 1440
PIPES, CONNECTIONS = 4, 16
# So many messages of each connection are shuffled together: four in ten are early.
SHUFFLED = 3
UNKNOWN_PORT = 40404

BASE = "without, X11 off"
WITH = "with"
AS_HTTP = "plain HTTP, without"
AS_IT_COMES = "without, as it comes"

VARIANTS: dict[str, list[str]] = {
    BASE: ["--disable-protocol", "x11"],
    WITH: ["-X", f"lua_script:{SCRIPT}"],
    "with, content off": ["-X", f"lua_script:{SCRIPT}", "-o", "tm3.content:FALSE"],
    AS_HTTP: [],
    AS_IT_COMES: [],
}


def answer_of(rng: random.Random) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\nContent-Type: application/x-any\r\n\r\n"
    return head.encode() + rng.randbytes(BODY)


def make_http(path: Path, megabytes: int) -> None:
    """The same downloads without proxies, sixteen TCP connections at a time."""
    rng, capture = random.Random(1), Capture()
    answer = answer_of(rng)
    time_us, total, port = 1000, 0, 10_000
    while total < megabytes * 1_000_000:
        streams = []
        for _ in range(CONNECTIONS):
            port += 1
            tcp = TcpStream(capture, Endpoint("10.7.0.1", port), Endpoint("192.0.2.1", 80))
            tcp.open(time_us)
            tcp.up(time_us + 10, b"GET /object HTTP/1.1\r\nHost: www.example.org\r\n\r\n")
            time_us += 20
            streams.append(tcp)
        for start in range(0, len(answer), PART):
            for tcp in streams:
                tcp.down(time_us, answer[start : start + PART])
                time_us += 12
                total += PART + 62
                if rng.random() < 0.5:
                    tcp.up(time_us, b"", ACK)
        for tcp in streams:
            tcp.close(time_us)
    capture.write(path)


def make_capture(path: Path, megabytes: int) -> None:
    """Downloads of 1 MB over HTTP, sixteen at a time, over four pipes, out of order among them."""
    rng, capture = random.Random(1), Capture()
    pipes = [
        TcpStream(capture, Endpoint("10.7.0.1", 40_000 + n), Endpoint("10.9.0.1", 6000))
        for n in range(PIPES)
    ]
    for number, pipe in enumerate(pipes):
        pipe.open(number * 10)
    answer = answer_of(rng)
    time_us, total, conn = 1000, 0, 0
    while total < megabytes * 1_000_000:
        batch = []
        for _ in range(CONNECTIONS):
            conn = conn % 32767 + 1
            request = f"GET /object/{conn} HTTP/1.1\r\nHost: www.example.org\r\n\r\n".encode()
            pipes[conn % PIPES].up(time_us, m.syn(conn, "192.0.2.1", 80) + m.data(conn, 1, request))
            time_us += 10
            batch.append((conn, iter(range(0, len(answer), PART))))
        number, group = 0, []
        while batch:
            for each, parts in list(batch):
                start = next(parts, None)
                if start is None:
                    batch.remove((each, parts))
                    group.append(m.fin(each, number))
                else:
                    group.append(m.data(each, number, answer[start : start + PART]))
            number += 1
            if number % SHUFFLED and batch:
                continue
            rng.shuffle(group)
            for raw in group:
                pipe = pipes[rng.randrange(PIPES)]
                pipe.down(time_us, raw)
                time_us += 12
                total += len(raw) + 54
                if rng.random() < 0.5:
                    pipe.up(time_us, b"", ACK)
            group = []
    capture.write(path)


def make_small(path: Path, messages: int, together: int) -> None:
    """Messages of sixteen connections, 10 to 60 bytes each, some of them early."""
    rng, capture, time_us = random.Random(1), Capture(), 1000
    pipes = [
        TcpStream(capture, Endpoint("10.7.0.1", 40_000 + n), Endpoint("10.9.0.1", 6000))
        for n in range(PIPES)
    ]
    for number, pipe in enumerate(pipes):
        pipe.open(number * 10)
    for conn in range(1, CONNECTIONS + 1):
        pipes[conn % PIPES].up(time_us, m.syn(conn, "192.0.2.1", UNKNOWN_PORT))
        time_us += 10
    for first in range(0, messages // CONNECTIONS, SHUFFLED):
        group = [
            m.data(conn, number, rng.randbytes(rng.randint(10, 60)))
            for number in range(first, first + SHUFFLED)
            for conn in range(1, CONNECTIONS + 1)
        ]
        rng.shuffle(group)
        for at in range(0, len(group), together):
            pipe = pipes[rng.randrange(PIPES)]
            pipe.down(time_us, b"".join(group[at : at + together]))
            time_us += 12
            if rng.random() < 0.5:
                pipe.up(time_us, b"", ACK)
    capture.write(path)


def cpu_s(capture: Path, arguments: list[str], limit_s: int) -> float | None:
    """CPU seconds of one run, in a home of its own; None if it was stopped at the limit."""
    with tempfile.TemporaryDirectory(prefix="tm3-bench-") as home:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["prlimit", f"--cpu={limit_s}", "env", f"HOME={home}", f"XDG_CONFIG_HOME={home}"]
        command += ["tshark", "-n", "-o", "tcp.reassemble_out_of_order:TRUE", "-r", str(capture)]
        done = subprocess.run(
            command + arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    done.check_returncode()
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def time_all(pipes: Path, http: Path | None, rounds: int, limit_s: int) -> dict[str, list[float]]:
    """CPU seconds by variant, in turns; none for what was stopped, which is not tried again."""
    seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    stopped = set()
    for _ in range(rounds):
        for name, options in VARIANTS.items():
            capture = http if name == AS_HTTP else pipes
            if capture is None or name in stopped:
                continue
            taken = cpu_s(capture, options, limit_s)
            if taken is None:
                stopped.add(name)
            else:
                seconds[name].append(taken)
    return {name: [] if name in stopped else taken for name, taken in seconds.items()}


def report(seconds: dict[str, list[float]], limit_s: int, compared: bool) -> float | None:
    """Prints a line a variant; the ratio that counts, or None if there is none."""
    base = statistics.median(seconds[BASE]) if seconds[BASE] else None
    for name, values in seconds.items():
        if values and base:
            median = statistics.median(values)
            print(f"{name:22}{median:8.2f} s  ratio {median / base:5.2f}  "
                  f"({min(values):.2f} to {max(values):.2f})")  # fmt: skip
        elif name != AS_HTTP or compared:
            print(f"{name:22} stopped after {limit_s} s")
    return statistics.median(seconds[WITH]) / base if base and seconds[WITH] else None


def main() -> int:
    parser = argparse.ArgumentParser(description="Times the dissector beside tshark without it.")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=int, default=60, help="CPU seconds of one run")
    parser.add_argument("--messages", type=int, help="so many small ones, instead of downloads")
    parser.add_argument("--together", type=int, default=24, help="of small ones, in a segment")
    parser.add_argument("--capture", type=Path, help="time this one, instead of one made for it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tm3-bench-") as folder:
        pipes, http = arguments.capture, None
        if arguments.messages:
            pipes = Path(folder) / "small.pcap"
            make_small(pipes, arguments.messages, arguments.together)
        elif not pipes:
            pipes, http = Path(folder) / "pipes.pcap", Path(folder) / "http.pcap"
            make_capture(pipes, arguments.megabytes)
            make_http(http, arguments.megabytes)
        print(f"{pipes.stat().st_size / 1e6:.0f} MB, CPU seconds of {arguments.rounds} rounds")
        seconds = time_all(pipes, http, arguments.rounds, arguments.limit)
    ratio = report(seconds, arguments.limit, http is not None)
    if ratio is None:
        return 1
    print(f"{ratio:.2f} times tshark without the dissector; {LIMIT:g} is the limit")
    return 0 if ratio < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
