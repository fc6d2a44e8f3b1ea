# SPDX-License-Identifier: MIT
"""Peaks that are known beforehand are found; queries go as they should; what is wrong is said."""

import contextlib
import json
import math
import os
import random
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import tools
from bench.blocks import plan
from bench.programs import Program, Trouble, running
from bench.ramp import peak, report, unbound
from bench.ramp.__main__ import parse_arguments
from bench.ramp.cases import CONNECTIONS, KINDS, WAYS, Case, every
from bench.ramp.generator import Generator, asking
from bench.ramp.measure import ASKER, Pace, look_for_peak, metrics
from bench.ramp.peak import NoPeak, Step

ROOT = Path(__file__).parents[2]
NEAR = 0.05  # of the limit


# --- the search, with servers that are only arithmetic ---------------------


def dropping(limit: float) -> peak.Ask:
    """What is too much has no answer."""
    return lambda rate: Step(rate, round(rate), round(rate), round(min(rate, limit)))


def collapsing(limit: float) -> peak.Ask:
    """What is too much takes more time than answers do."""

    def ask(rate: float) -> Step:
        answered = rate if rate <= limit else max(0.0, limit - 2 * (rate - limit))
        return Step(rate, round(rate), round(rate), round(answered))

    return ask


def halting(limit: float, share: float, seed: int) -> peak.Ask:
    """It stops for a tenth of the time in some steps, as a machine does that others use."""
    dice = random.Random(seed)

    def ask(rate: float) -> Step:
        part = 0.9 if dice.random() < share else 1.0
        return Step(rate, round(rate), round(rate), round(part * min(rate, limit)))

    return ask


LIMITS = (60.0, 1_000.0, 2_000.0, 2_001.0, 31_417.0, 99_999.0, 250_000.0)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("server", [dropping, collapsing])
def test_the_peak_of_a_known_limit(server: Callable[[float], peak.Ask], limit: float) -> None:
    found = peak.find(server(limit), first=2_000.0)
    assert abs(found.rate - limit) <= NEAR * limit
    assert found.asked


@pytest.mark.parametrize("seed", range(20))
def test_a_halt_is_no_end(seed: int) -> None:
    """Of all steps a twentieth: a first step under the share would often end far too early."""
    found = peak.find(halting(40_000.0, 0.05, seed), first=2_000.0)
    assert abs(found.rate - 40_000.0) <= NEAR * 40_000.0


def test_who_asks_too_slowly_is_told_from_a_slow_server() -> None:
    def ask(rate: float) -> Step:
        sent = round(min(rate, 30_000.0))
        return Step(rate, round(rate), sent, sent)

    found = peak.find(ask, first=2_000.0)
    assert not found.asked and abs(found.rate - 30_000.0) <= NEAR * 30_000.0


def test_a_dead_server_has_no_peak() -> None:
    with pytest.raises(NoPeak, match="not even 10 queries a second"):
        peak.find(lambda rate: Step(rate, round(rate), round(rate), 0), first=2_000.0)


# --- bench-ramp ------------------------------------------------------------


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not Path("/usr/include/openssl/ssl.h").exists():
        pytest.skip("no libssl-dev here, which bench-ramp is built with")
    return str(tools.build_ramp(tmp_path_factory.mktemp("ramp")))


def free_port(kind: int) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def limited(tool: str, kind: str, rate: int, tmp: Path) -> Iterator[int]:
    port = free_port(socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    argv = (tool, "serve", kind, str(port), str(rate))
    with running([Program("limited", argv, says="serving")], tmp):
        yield port


@contextlib.contextmanager
def asker(tool: str, kind: str, port: int, clients: int, tmp: Path) -> Iterator[Generator]:
    command = [tool, "ask", kind, str(port), "1", str(clients), "7"]
    with asking(command, tmp / "asker.log") as found:
        yield found


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """It asks a server that is only arithmetic, and all the time it needs is counted."""
    names = ("main.c", "wire.c", "book.c", "dice.c", "virtual.c")
    sources = [ROOT / "bench" / "ramp" / name for name in names]
    target = tmp_path_factory.mktemp("virtual") / "bench-ramp"
    return str(tools.compile_once(target, sources, ("-lm",)))


@pytest.mark.parametrize("limit", [900, 10_000, 55_000])
@pytest.mark.parametrize("seed", range(3))
def test_the_peak_of_a_server_of_known_limit(
    virtual: str, limit: int, seed: int, tmp_path: Path
) -> None:
    """As a case is measured. Near a peak chance decides: the queries of a second vary by their
    number's square root."""
    command = [virtual, "ask", "udp", str(limit), "1", "50", str(seed)]
    with asking(command, tmp_path / "asker.log") as it:
        found = look_for_peak(it, Pace(0.05, 1.0, 1.0))
    assert abs(found.rate - limit) <= NEAR * limit + 3 * math.sqrt(limit)
    assert found.asked


def test_a_limited_server_gives_no_more(tool: str, tmp_path: Path) -> None:
    """However fast it is asked, beyond what it was late by before the first."""
    limit, queries, credit_s = 8_000, 2_000, 0.01
    one = b"\x00\x1d" + bytes(2) + b"\x01\x00\x00\x01" + bytes(6)
    one += b"\x02q7\x03tm3\x04test\x00" + b"\x00\x01\x00\x01"
    assert len(one) == 2 + one[1]
    with limited(tool, "tcp", limit, tmp_path) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            begin = time.monotonic()
            client.sendall(one * queries)
            left = queries * (len(one) + 16)
            while left:
                left -= len(client.recv(min(left, 1 << 16)))
            took = time.monotonic() - begin
    assert took >= queries / limit - credit_s


@contextlib.contextmanager
def answering(answer: Callable[[bytes, int], bytes | None], came: list[Any]) -> Iterator[int]:
    """A server for datagrams: `answer` is told the query and how many came before."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                query, sender = server.recvfrom(512)
                came.append((sender[1], query))
                reply = answer(query, len(came) - 1)
                if reply is not None:
                    server.sendto(reply, sender)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            ended.set()
            server.sendto(b"", server.getsockname())
            thread.join()


def right(query: bytes, flags: bytes = b"\x81\x80", answers: int = 1, last: int = 0) -> bytes:
    """Of the name that is asked for; `last` is added to its address."""
    if not query:
        return b""
    name = query[13 : 13 + query[12]].decode()
    address = bytes([192, 0, 2, (int(name[1:]) + last) % 256])
    record = b"\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04" + address
    head = query[:2] + flags + b"\0\x01" + struct.pack("!HHH", answers, 0, 0)
    return head + query[12:] + record


GAPS = """
#include <stdio.h>
#include "ramp.h"
int main(void)
{
	struct dice d = { 7 };

	for (int i = 0; i < 20000; i++)
		printf("%.3f\\n", dice_gap_ns(&d, 1e6));
	return 0;
}
"""


def test_gaps_are_exponential(tmp_path: Path) -> None:
    """Of a million a second. As many are shorter than any time as should be (a Kolmogorov-Smirnov
    distance that one of a thousand samples has)."""
    source, program = tmp_path / "gaps.c", tmp_path / "gaps"
    source.write_text(GAPS)
    folder = ROOT / "bench" / "ramp"
    command = ["cc", "-std=c11", "-I", folder, "-o", program, source, folder / "dice.c", "-lm"]
    subprocess.run(command, check=True)
    told = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    gaps = sorted(float(line) for line in told.splitlines())
    shares = ((n / len(gaps), 1 - math.exp(-gap / 1e3)) for n, gap in enumerate(gaps))
    assert max(abs(found - wanted) for found, wanted in shares) < 1.95 / math.sqrt(len(gaps))


def test_queries_are_a_poisson_process_over_all_clients(tool: str, tmp_path: Path) -> None:
    """The numbers of those that were due in one time after another vary as they should, and all
    clients are chosen equally often. Both are of the schedule, however late the machine is."""
    clients, steps = 20, 40
    came: list[Any] = []
    with answering(lambda query, _: right(query), came) as port:
        with asker(tool, "udp", port, clients, tmp_path) as it:
            told = [it.step(500.0, 0.0, 0.05) for _ in range(steps)]
    due = [step["due"] for step in told]
    mean = sum(due) / steps
    assert abs(mean - 25) < 4 * math.sqrt(25 / steps)
    assert 0.45 < statistics.variance(due) / mean < 1.85
    asked = [port for port, query in came[clients:] if query]
    assert len(asked) == sum(step["sent"] for step in told) > 0.8 * sum(due)
    chosen = Counter(asked)
    expected = len(asked) / clients
    assert len(chosen) == clients
    assert 5 < sum((n - expected) ** 2 / expected for n in chosen.values()) < 45


def test_each_query_is_another_one(tool: str, tmp_path: Path) -> None:
    came: list[Any] = []
    with answering(lambda query, _: right(query), came) as port:
        with asker(tool, "udp", port, 3, tmp_path) as it:
            it.step(1_000.0, 0.0, 0.5)
    asked = [query for _, query in came if query]
    assert len(set(asked)) == len(asked) > 300
    assert len({query[12:] for query in asked}) == 256  # all names


def test_what_is_not_answered_is_counted(tool: str, tmp_path: Path) -> None:
    """Every second one, of those behind the clients' first."""
    came: list[Any] = []
    with answering(lambda q, n: right(q) if n < 5 or n % 2 else None, came) as port:
        with asker(tool, "udp", port, 5, tmp_path) as it:
            told = it.step(400.0, 0.0, 0.5)
            again = it.step(400.0, 0.0, 0.2)
    for step in (told, again):
        assert 0.8 * step["due"] <= step["sent"] <= step["due"]
        assert abs(step["all"] - step["sent"] / 2) <= 1
        assert step["answered"] <= step["all"]
        assert step["p95_us"] is None  # it is among those that never came


def test_wrong_answers_end_it(tool: str, tmp_path: Path) -> None:
    for change, why in (
        (lambda q, _: right(q, flags=b"\x81\x85"), "it says that there is an error (RCODE)"),
        (lambda q, _: right(q, flags=b"\x83\x80"), "it is cut short (TC)"),
        (lambda q, _: right(q, last=1), "it does not have one address, the one of that name"),
        (lambda q, _: right(q, answers=0), "it does not have one address, the one of that name"),
        (lambda q, _: right(q)[:-1], "it does not have one address, the one of that name"),
        (lambda q, _: q, "it is no answer to a query of ours"),
        (lambda q, _: right(q)[:20], "it is no answer to a query of ours"),
        (lambda q, _: q[:5], "it is no answer to a query of ours"),
    ):
        with answering(change, []) as port, pytest.raises(Trouble) as said:
            with asker(tool, "udp", port, 1, tmp_path):
                pass
        assert str(said.value) == f"who asks: bench-ramp: a wrong answer to client 0: {why}"


def test_a_connection_that_ends_is_told(tool: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        with pytest.raises(Trouble, match=r"bench-ramp: a client cannot receive: [BC]"):
            with asker(tool, "tcp", server.getsockname()[1], 1, tmp_path):
                pass
        thread.join()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: ask"),
        (["ask", "sctp", "53", "1", "1", "1"], "KIND: sctp is none of udp, tcp, tls"),
        (["ask", "udp", "0", "1", "1", "1"], "PORT: 0 is not from 1 to 65535"),
        (["ask", "udp", "65535", "2", "1", "1"], "PORTS: 2 is not from 1 to 1"),
        (["ask", "udp", "53", "1", "0", "1"], "CLIENTS: 0 is not from 1 to 1000000"),
        (["ask", "udp", "53", "1", "1x", "1"], "CLIENTS: 1x is not from"),
        (["ask", "udp", "53", "1", "1000000", "1"], "CLIENTS: 1000000 are more than the"),
        (["ask", "tls", "53", "1", "1", "1"], "AUTHORITY: a certificate goes with tls"),
        (["ask", "tcp", "53", "1", "1", "1", "x"], "AUTHORITY: a certificate goes with tls"),
        (["serve", "tls", "53", "1"], "KIND: serve speaks udp and tcp"),
        (["serve", "udp", "53", "-1"], "RATE: -1 is not from 0 to"),
    ],
)
def test_wrong_words_are_refused_in_a_line(tool: str, words: list[str], said: str) -> None:
    done = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"bench-ramp: {said}") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("line", ["100", "0 0 1", "100 -1 1", "100 0 0", "1e9 0 1", "1 1 1 1"])
def test_a_wrong_step_is_refused_in_a_line(tool: str, line: str, tmp_path: Path) -> None:
    with limited(tool, "udp", 0, tmp_path) as port:
        done = subprocess.run(
            [tool, "ask", "udp", str(port), "1", "1", "1"],
            input=f"{line}\n",
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == f"bench-ramp: not a step of RATE SETTLE SECONDS: {line}\n"


def test_nobody_there_is_told(tool: str, tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="client 0 of 3 cannot be opened: Connection refused"):
        with asker(tool, "tcp", free_port(socket.SOCK_STREAM), 3, tmp_path):
            pass


# --- a whole case, but for the search --------------------------------------

INSIDE = """
import json, sys
from pathlib import Path
from bench import machine, namespace, tools
from bench.ramp import measure, peak
from bench.ramp.cases import Case
from bench.rivals import Place

namespace.furnish()
build, kind, way = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
found = tools.find({"rp", "lp", "ramp", "unbound", "openssl"}, build)
place = Place(namespace.RUN / "ramp", found.paths, machine.two_cores(), namespace.descriptors())
rate = float(sys.argv[5])
measure.look_for_peak = lambda asker, pace: peak.Peak(rate, True, ())
case = Case(kind, way, int(sys.argv[4]))
pace = measure.Pace(0.0, 0.1, 0.4, float(sys.argv[6]) or None)
figure = measure.measure(case, place, pace, 7)
print(json.dumps({"connections": case.connections, **figure}))
"""


def measured(
    tool: str, tmp_path: Path, case: Case, peak_at: float, rate: float = 0.0
) -> dict[str, Any]:
    """A case as if its peak had been found there; or at a rate that is told."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a network namespace")
    build = Path(os.environ.get("TM3_BUILD") or ROOT / "build")
    lacking = [name for name in ("rp", "lp") if not (build / name).exists()]
    lacking += [name for name in ("unbound", "openssl") if not tools.which(name)]
    if lacking:
        pytest.skip(f"no {lacking[0]} here")
    for name, path in (("rp", build / "rp"), ("lp", build / "lp"), ("bench-ramp", Path(tool))):
        (tmp_path / name).symlink_to(path)
    argv = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    argv += [sys.executable, "-c", INSIDE, str(tmp_path)]
    argv += [case.kind, case.way, str(case.connections), str(peak_at), str(rate)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("kind", "way", "connections"),
    [("udp", "4", 600), ("tcp", "1", 40), ("tls", "direct", 40), ("tls", "4", 40)],
)
def test_a_case_of_unbound(
    tool: str, kind: str, way: str, connections: int, tmp_path: Path
) -> None:
    """Over two ports of lp where there are more clients than one takes. Each was asked once before;
    how many of those that are due a late machine sends is not looked at."""
    figure = measured(tool, tmp_path, Case(kind, way, connections), 1_000.0)
    held = figure["held"]
    assert held["all"] == held["sent"] > 0 and held["due"] > 200
    roles = {"unbound"} | ({"rp", "lp"} if way != "direct" else set())
    assert set(figure["rss_kib"]) == roles
    assert set(figure["cpu_seconds"]) == roles | {ASKER}
    assert all(0 < spent < 1 for spent in figure["cpu_seconds"].values())


def test_a_rate_that_is_told(tool: str, tmp_path: Path) -> None:
    figure = measured(tool, tmp_path, Case("udp", "direct", 10), 9e9, rate=700.0)
    assert figure["held"]["rate"] == 700.0 and "peak" not in figure
    assert "failed" in figure or {"cpu.unbound", "kib.unbound", "p50"} <= metrics(figure).keys()


def test_a_peak_that_does_not_last_is_a_failure(tool: str, tmp_path: Path) -> None:
    """Nobody answers a million in a second."""
    figure = measured(tool, tmp_path, Case("udp", "direct", 10), 1_250_000.0)
    assert "of 1000000 queries a second were answered, too few to measure at" in figure["failed"]
    assert figure["held"]["due"] > 300_000 and metrics(figure) == {}


# --- what surrounds it ------------------------------------------------------


def test_every_case_is_there_or_has_a_reason() -> None:
    cases, missing = every(KINDS, WAYS, CONNECTIONS)
    assert len(cases) + len(missing) == len(KINDS) * len(WAYS) * len(CONNECTIONS)
    assert Case("udp", "4", 1_000) in cases and Case("udp", "4", 10_000) not in cases
    assert Case("udp", "4", 1_000).ports == 2 and Case("udp", "direct", 1_000).ports == 1
    why = missing["udp, unbound over 4 pipes, 10,000 connections"]
    assert why == "a session has 1,024 flows of datagrams at most, so 1,000 clients"
    assert "TLS" in missing["tls, a server that only answers, 100 connections"]


def test_each_block_has_each_case_once() -> None:
    cases, _ = every(KINDS, WAYS, CONNECTIONS)
    steps = plan(cases, 2, 5)
    assert len(steps) == len(set(steps)) == 2 * len(cases)
    assert plan(cases, 2, 5) == steps != plan(cases, 2, 6)


def test_unbound_has_room_for_twice_as_many(tmp_path: Path) -> None:
    assert unbound.slots(100, 20_000) == 264
    assert unbound.slots(10_000, 20_000) == 19_900  # not half of them: 50 by 100, rounded down
    text = unbound.configuration(tmp_path, 7000, 264, tls=False)
    assert "incoming-num-tcp: 264\n" in text and "tls" not in text
    assert f'tls-service-pem: "{tmp_path}/certificate.pem"' in unbound.configuration(
        tmp_path, 7000, 264, tls=True
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kinds", "udp,sctp"], "'sctp' is none of udp, tcp, tls"),
        (["--ways", "2"], "'2' is none of bare, direct, 1, 4, 16"),
        (["--connections", "100,0"], "'0' is not a positive number"),
        (["--connections", "10,ten"], "'ten' is not a positive number"),
        (["--connections", "10000000"], "10000000 are more than the"),
    ],
)
def test_wrong_arguments_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def figure(way: str, connections: int, rate: float, cpu: dict[str, float]) -> dict[str, Any]:
    return {
        "block": 0,
        "kind": "tcp",
        "way": way,
        "connections": connections,
        "peak": rate,
        "asked": way != "bare",
        "held": {"p50_us": 100.0, "p95_us": 900.0, "all": 1_000},
        "cpu_seconds": cpu,
        "rss_kib": {role: 3.0 * connections for role in cpu},
        "rss_all_kib": {role: 5_000.0 + 9.0 * connections for role in cpu},
        "others_share": 0.1,
    }


def test_report_tells_peaks_growth_and_what_was_asked() -> None:
    figures = [
        figure("bare", 100, 90_000.0, {"bare": 0.002}),
        figure("direct", 100, 40_000.0, {"unbound": 0.010}),
        figure("direct", 10_000, 30_000.0, {"unbound": 0.018}),
        figure("4", 100, 20_000.0, {"unbound": 0.010, "rp": 0.010, "lp": 0.020}),
        figure("4", 10_000, 15_000.0, {"unbound": 0.012, "rp": 0.016, "lp": 0.020}),
        {
            "block": 0,
            "kind": "tls",
            "way": "direct",
            "connections": 100,
            "failed": "it fell over",
            "others_share": 0.6,
        },
    ]
    result = {
        "command": "bench.ramp",
        "started": "now",
        "seed": 1,
        "blocks": 1,
        "pace": {"step_s": 1.0, "hold_s": 5.0},
        "control": "cubic",
        "machine": {"cpu": "c", "processors_used": [0, 1], "kernel": "k"},
        "versions": {},
        "missing": {"udp, x": "there is none"},
        "figures": figures,
    }
    for text in (report.text(result), report.markdown(result)):
        lines = [" ".join(line.replace("|", " ").split()) for line in text.splitlines()]
        assert "unbound over 4 pipes 10,000 15000 0.10 0.90 12.0 16.0 20.0 3.00 3.00 3.00" in lines
        assert "unbound over 4 pipes 0.50 0.50" in lines  # of unbound alone
        assert "TCP, unbound over 4 pipes 1.20 1.60 1.00" in lines
        assert "rp's µs a query, 10,000 connections by 100 1.5 1.60 does not hold" in lines
        assert "the same, by unbound's own growth 1 0.89 holds" in lines
        assert "KiB of lp for a connection 4 3.00 holds" in lines
        kernel = (
            "KiB of unbound with room for two TCP connections (published: one, with the kernel's)"
        )
        assert f"{kernel} 7.5 9.00" in lines
        assert "Limited by who asks, so at least as high: tcp, a server that only answers" in text
        assert "Not measured: udp, x: there is none." in lines
        assert "peak of TLS by that of TCP" not in text  # there is none
        assert "Failed: tls, unbound, 100 connections: it fell over." in lines
