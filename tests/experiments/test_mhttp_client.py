# SPDX-License-Identifier: MIT
"""mHTTP as a program: files through it, and through unmodified wget and curl; wrong words."""

import asyncio
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from base.shell import until
from experiments.workloads.exchange import MPTCP_FELL_BACK, MPTCP_INFO, SOL_MPTCP
from experiments.workloads.mhttp.__main__ import main
from experiments.workloads.mhttp.connection import Connection
from experiments.workloads.mhttp.path import Path as Way
from experiments.workloads.mhttp.sink import File
from experiments.workloads.mhttp.sources import Source
from tests.conftest import why_no_namespace
from tests.experiments.mhttp_server import Server, Told, free_port, serving
from tests.experiments.watch_page import opened
from tests.relay.netns import namespace, veth

ROOT = Path(__file__).parents[2]
# Only who names a resolver needs a package, and a start that does not look for any is short.
MHTTP = [sys.executable, "-S", "-m", "experiments.workloads.mhttp"]
TWO = ["--path", "127.0.0.1", "--path", "127.0.0.2"]
CHUNK = 65536
SIZES = (0, 1, 1000, CHUNK, CHUNK + 1, 3_000_000)
CONTENT = random.Random(4).randbytes(40 * CHUNK)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """nginx on loopback: a folder of files, and its port."""
    if shutil.which("nginx") is None:
        pytest.skip("no nginx on this machine: sudo make setup")
    folder = tmp_path / "site"
    (folder / "logs").mkdir(parents=True)
    for size in SIZES:
        (folder / str(size)).write_bytes(random.Random(size).randbytes(size))
    port = free_port(("127.0.0.1",))
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"daemon off; {user} worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;"
        "events {} http { access_log off; server {"
        f" listen 127.0.0.1:{port}; root {folder}; location /up {{ return 200; }} }} }}\n"
    )
    argv = ["nginx", "-p", str(folder), "-c", f"{folder}/nginx.conf"]
    argv += ["-e", f"{folder}/error.log"]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process:
        try:
            until("nginx", lambda: answers(port))
            yield folder, port
        finally:
            process.terminate()


def answers(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def proxy(*more: str) -> Iterator[str]:
    """Its URL."""
    argv = [*MHTTP, "--proxy", "0", *TWO, "--chunk", str(CHUNK), *more]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("mhttp: proxy on 127.0.0.1:"), line
            yield "http://" + line.split()[-1]
        finally:
            process.terminate()
            assert process.wait(timeout=10) == 130


def run(*words: str | Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    environ = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return subprocess.run(
        [str(it) for it in words],
        cwd=ROOT,
        env={**environ, **more},
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize("policy", ["next", "T", "ahead", "deadline"])
def test_files(site: tuple[Path, int], tmp_path: Path, policy: str) -> None:
    folder, port = site
    for size in SIZES:
        got = tmp_path / "got"
        words = [f"http://127.0.0.1:{port}/{size}", "-o", got, "--scheduler", policy]
        done = run(*MHTTP, *words, *TWO, "--chunk", str(CHUNK))
        assert (done.returncode, done.stderr) == (0, b"")
        assert digest(got) == digest(folder / str(size))
        got.unlink()


def test_standard_output(site: tuple[Path, int]) -> None:
    folder, port = site
    done = run(*MHTTP, f"http://127.0.0.1:{port}/3000000", *TWO, "--chunk", "64KiB")
    assert done.stdout == (folder / "3000000").read_bytes()


@pytest.mark.parametrize("program", ["wget", "curl"])
def test_unmodified_programs(site: tuple[Path, int], tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program} on this machine")
    folder, port = site
    with proxy() as through:
        for size in SIZES:
            got, url = tmp_path / "got", f"http://127.0.0.1:{port}/{size}"
            words = ["wget", "-q", "-O", got] if program == "wget" else ["curl", "-sSfo", got]
            done = run(*words, url, http_proxy=through)
            assert (done.returncode, done.stderr) == (0, b"")
            assert digest(got) == digest(folder / str(size))


DIGEST = """(async () => {
    const body = await (await fetch("/3000000")).arrayBuffer();
    const found = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
    return [...found].map((it) => it.toString(16).padStart(2, "0")).join("");
})()"""


@pytest.mark.skipif(
    shutil.which("chromium") is None,
    reason="no chromium on this machine: sudo .ci/setup experiments/packages.debian",
)
def test_a_browser(site: tuple[Path, int], tmp_path: Path) -> None:
    """Its page, and an object by ranges over both paths."""
    folder, port = site
    url, told = f"http://127.0.0.1:{port}/", tmp_path / "account"
    (folder / "page.html").write_text("<title>by mHTTP</title>")

    async def work(through: str) -> tuple[str, str]:
        async with asyncio.timeout(60), opened(f"{url}page.html", proxy=through) as page:
            return await page.value("document.title"), await page.value(DIGEST)

    with proxy("--account", str(told)) as through:
        found = asyncio.run(work(through))
    assert found == ("by mHTTP", digest(folder / "3000000"))
    accounts = {it["url"]: it for it in map(json.loads, told.read_text().splitlines())}
    assert f"{url}page.html" in accounts
    assert len(accounts[f"{url}3000000"]["legs"]) == 2


def test_what_goes_through_the_proxy_unchanged(site: tuple[Path, int], tmp_path: Path) -> None:
    """CONNECT, HEAD, a range of the client's own, a POST; answers that are none of an object."""
    folder, port = site
    url = f"http://127.0.0.1:{port}"
    with proxy() as through:
        curl = ("curl", "-sS", "-x", through)
        content = (folder / "3000000").read_bytes()
        assert run(*curl, "-p", f"{url}/3000000").stdout == content
        head = run(*curl, "-I", f"{url}/3000000").stdout
        assert head.startswith(b"HTTP/1.1 200") and b"Content-Length: 3000000" in head
        assert run(*curl, "-r", "5-9", f"{url}/3000000").stdout == content[5:10]
        code = ("-o", "/dev/null", "-w", "%{http_code}")
        assert run(*curl, *code, "-d", "x" * 5000, f"{url}/up").stdout == b"200"
        assert run(*curl, *code, f"{url}/none").stdout == b"404"
        assert run(*curl, *code, "http://127.0.0.1:1/").stdout == b"502"
        assert run(*curl, *code, "-x", through, "http://nobody.invalid/").stdout == b"502"


def test_a_client_of_the_proxy_sees_a_cut(tmp_path: Path) -> None:
    """Both servers are gone in mid-object: curl says that bytes are missing."""

    def fault(number: int, told: Told) -> Told:
        return replace(told, cut=1000, then="die") if number == 5 else told

    async def work(through: str) -> int:
        async with serving({"127.0.0.1": Server(CONTENT, fault)}) as port:
            words = ("curl", "-sS", "-x", through, f"http://127.0.0.1:{port}/", "-o", "/dev/null")
            process = await asyncio.create_subprocess_exec(
                *words, stderr=asyncio.subprocess.DEVNULL
            )
            return await process.wait()

    with proxy() as through:
        assert asyncio.run(work(through)) in (18, 56)  # too few bytes, or a reset


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["http://127.0.0.1/x", "--chunk", "0"], "chunk: 0 "),
        (["http://127.0.0.1/x", "--chunk", "many"], "chunk: 'many'"),
        (["http://127.0.0.1/x", "--path", "192.0.2.77"], "path '192.0.2.77': "),
        (["http://127.0.0.1/x", "--path", "eth77"], "path 'eth77': "),
        (["http://127.0.0.1/x", "--path", "127.0.0.1,dns"], "resolver 'dns' is not "),
        (["http://127.0.0.1/x", "--path", "127.0.0.1", "--path", "127.0.0.1"], "named twice"),
        (["ftp://127.0.0.1/x"], "ftp://127.0.0.1/x: a URL of the scheme 'ftp'"),
        (["https://127.0.0.1/x"], "https://127.0.0.1/x: a URL of the scheme 'https'"),
        (["127.0.0.1/x"], "127.0.0.1/x: a URL without a scheme"),
        (["http:///x"], "http:///x: a URL without a host"),
        (["http://127.0.0.1:99999/x"], "http://127.0.0.1:99999/x: "),
        (["http://127.0.0.1/x", "--scheduler", "best"], "scheduler 'best' is none of next, T,"),
        (["http://127.0.0.1/x", "--connections", "0"], "connections: 0 "),
        (["http://127.0.0.1/x", "--proxy", "80"], "either URL or --proxy"),
        (["--proxy", "http"], "proxy: 'http' is no port"),
        ([], "which URL"),
    ],
)
def test_wrong_words(
    tmp_path: Path, words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that names them, and no file."""
    out = [] if "--proxy" in words else ["-o", str(tmp_path / "got")]
    assert main([*words, *out]) == 2
    said = capsys.readouterr().err
    assert said.startswith("mhttp: ") and named in said and said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_no_partial_file(tmp_path: Path) -> None:
    """Not of what is cut short, not of an answer that is no object, not after a signal."""

    def cut(number: int, told: Told) -> Told:
        return replace(told, cut=1000, then="die") if number == 5 else told

    def silent(number: int, told: Told) -> Told:
        return replace(told, cut=1000, then="be silent") if number == 5 else told

    def missing(_: int, told: Told) -> Told:
        return Told("404 Not Found", {"Content-Length": "4"}, b"gone")

    async def work(server: Server, number: signal.Signals | None) -> tuple[int | None, str]:
        async with serving({"127.0.0.1": server}) as port:
            words = [f"http://127.0.0.1:{port}/x", "-o", str(tmp_path / "got"), *TWO]
            process = await asyncio.create_subprocess_exec(
                *MHTTP,
                *words,
                *("--chunk", str(CHUNK), "--silence", "30"),
                cwd=ROOT,
                stderr=asyncio.subprocess.PIPE,
            )
            if number is not None:
                while len(server.asked) < 5:
                    await asyncio.sleep(0.01)
                assert [it.suffix for it in tmp_path.iterdir()] == [".part"]
                process.send_signal(number)
            _, said = await process.communicate()
            return process.returncode, said.decode()

    for fault, number, status, named in (
        (cut, None, 1, "127.0.0.1 by 127.0.0.1: "),
        (missing, None, 1, "answered 404 Not Found"),
        (silent, signal.SIGTERM, 130, ""),
        (silent, signal.SIGINT, 130, ""),
    ):
        found = asyncio.run(asyncio.wait_for(work(Server(CONTENT, fault), number), 60))
        assert found[0] == status and named in found[1]
        assert found[1].count("\n") == (status == 1)
        assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_refuses_none_that_gets_its_number(tmp_path: Path) -> None:
    """As in a container, whose first process always has the same one."""

    async def fetched(sink: File) -> None:
        await sink.write(b"whole")
        await sink.end()

    killed = File(tmp_path / "got")
    left = list(tmp_path.iterdir())
    asyncio.run(fetched(File(tmp_path / "got")))
    assert (tmp_path / "got").read_bytes() == b"whole"
    assert sorted(tmp_path.iterdir()) == sorted([*left, tmp_path / "got"])
    killed.drop()


@pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace()))
@pytest.mark.parametrize("down", [1, 2])
def test_a_path_goes_down(tmp_path: Path, down: int) -> None:
    """Silently, in mid-object: the other path carries the rest. Each path is a link of its own."""

    async def work() -> tuple[int | None, bytes]:
        with namespace("near") as near, namespace("far") as far:
            for number in (1, 2):
                wire = f"wire{number}"
                veth(near, f"10.78.{number}.1/24", far, f"10.78.{number}.2/24", wire)
            near.ip("rule", "add", "from", "10.78.2.1", "lookup", "102")
            near.ip("route", "add", "default", "via", "10.78.2.2", "table", "102")
            listening = far.open_socket()
            listening.bind(("0.0.0.0", 80))
            server = Server(CONTENT, piece_s=0.002)
            await server.start(listening)
            words = ["--path", "10.78.1.1", "--path", "10.78.2.1", "--silence", "0.7"]
            argv = near.command([*MHTTP, "http://10.78.1.2/x", "-o", tmp_path / "got", *words])
            process = await asyncio.create_subprocess_exec(
                *argv, "--chunk", str(CHUNK), cwd=ROOT, stderr=asyncio.subprocess.PIPE
            )
            while len(server.asked) < 12:
                await asyncio.sleep(0.005)
            far.ip("link", "set", f"wire{down}-r", "down")
            _, said = await process.communicate()
            server.die()
            return process.returncode, said

    assert asyncio.run(asyncio.wait_for(work(), 60)) == (0, b"")
    assert (tmp_path / "got").read_bytes() == CONTENT


@pytest.mark.parametrize("mptcp", [False, True])
def test_connections_speak_mptcp_where_they_are_told_to(mptcp: bool) -> None:
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        pytest.skip("this kernel has no MPTCP")

    async def work(port: int) -> str:
        source = Source(Way("one", "127.0.0.2"), "127.0.0.1")
        connection = await Connection.open(source, port, 5.0, mptcp=mptcp)
        sock = connection.writer.get_extra_info("socket")
        assert sock.getsockname()[0] == "127.0.0.2"
        try:
            (flags,) = struct.unpack_from("=I", sock.getsockopt(SOL_MPTCP, MPTCP_INFO, 64), 8)
        except OSError:
            return "plain TCP"
        finally:
            connection.close()
        return "fell back" if flags & MPTCP_FELL_BACK else "MPTCP"

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        spoken = asyncio.run(work(listening.getsockname()[1]))
    assert spoken == ("MPTCP" if mptcp else "plain TCP")
