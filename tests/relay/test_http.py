# SPDX-License-Identifier: MIT
"""curl and nginx through the proxies: every size that sits at a boundary, both ways, by hash."""

import hashlib
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.relay import payload, records
from tests.relay.ends import Ending, read_to_end, serving
from tests.relay.netns import Namespace
from tests.relay.programs import finish, program
from tests.relay.proxies import Pair, extended_pair, pair
from tests.relay.servers import nginx

SIZES = (0, 1, 4095, 4096, 4097, 1_000_000)
GIB = 1 << 30
FORWARD = ("--forward", "8081:127.0.0.1:8080")
WAYS = {
    "socks": (["--socks5", "127.0.0.1:1080"], "http://127.0.0.1:8080"),
    "socks-name": (["--socks5-hostname", "127.0.0.1:1080"], "http://localhost:8080"),
    "forward": ([], "http://127.0.0.1:8081"),
}


def curl(ns: Namespace, *args: str | Path, seconds: float = 60) -> str:
    argv = ["curl", "-sS", "--fail", "--max-time", str(int(seconds)), *args]
    code, out, err = finish(argv, ns, seconds + 10)
    assert code == 0, f"curl ended with {code}: {err}"
    return out


@pytest.mark.parametrize("way", WAYS)
def test_files_by_hash(box: Namespace, tmp_path: Path, way: str) -> None:
    options, url = WAYS[way]
    root = tmp_path / "root"
    root.mkdir()
    down = {size: payload.write(root / f"{size}", size, seed=size) for size in SIZES}
    with nginx(box, tmp_path, root), extended_pair(box, tmp_path, lp=FORWARD):
        for size, wanted in down.items():
            got = tmp_path / f"got-{size}"
            curl(box, *options, "-o", got, f"{url}/{size}")
            got.touch()  # curl makes no file of no bytes
            assert payload.file_digest(got) == wanted, f"{size} bytes came different"
        for size in SIZES:
            sent = tmp_path / f"sent-{size}"
            wanted = payload.write(sent, size, seed=size + 1)
            curl(box, *options, "-T", sent, f"{url}/up-{size}")
            assert payload.file_digest(root / f"up-{size}") == wanted, f"{size} bytes went wrong"


@pytest.mark.parametrize(
    ("proxies", "pipes"),
    [pytest.param(extended_pair, 4, id="extension"), pytest.param(pair, 1, id="baseline")],
)
def test_one_connection_carries_many_requests(
    box: Namespace,
    tmp_path: Path,
    proxies: Callable[..., AbstractContextManager[Pair]],
    pipes: int,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    wanted = {f"{n}": payload.write(root / f"{n}", 1 + n * 997, seed=n) for n in range(40)}
    out = tmp_path / "out"
    out.mkdir()
    stats = tmp_path / "lp.jsonl"
    with (
        nginx(box, tmp_path, root),
        proxies(box, tmp_path, pipes=pipes, lp=[*FORWARD, "--stats", str(stats)]),
    ):
        curl(box, "--output-dir", out, "--remote-name-all",
             *(f"http://127.0.0.1:8081/{name}" for name in wanted))  # fmt: skip
    assert {p.name: payload.file_digest(p) for p in out.iterdir()} == wanted
    assert len(records.of(stats, "conn")) == 1


def test_300_connections_at_once(box: Namespace, tmp_path: Path) -> None:
    """What a browser does with a heavy page, six times over."""
    root = tmp_path / "root"
    root.mkdir()
    wanted = {f"{n}": payload.write(root / f"{n}", 50 + n * 311, seed=n) for n in range(300)}
    out = tmp_path / "out"
    out.mkdir()
    stats = tmp_path / "lp.jsonl"
    urls = tmp_path / "urls"
    urls.write_text("".join(f'url="http://127.0.0.1:8081/{n}"\noutput="{n}"\n' for n in wanted))
    with (
        nginx(box, tmp_path, root),
        extended_pair(box, tmp_path, lp=[*FORWARD, "--stats", str(stats)]),
    ):
        curl(box, "--parallel", "--parallel-immediate", "--parallel-max", "300",
             "-H", "Connection: close", "--output-dir", out, "-K", urls)  # fmt: skip
    assert {p.name: payload.file_digest(p) for p in out.iterdir()} == wanted
    conns = records.of(stats, "conn")
    assert len(conns) == 300
    assert sum(c["rx_bytes"] for c in conns) > sum((root / name).stat().st_size for name in wanted)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_gibibyte_each_way_at_once_by_hash(box: Namespace, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    big = root / "big"
    wanted = Ending("eof", GIB, payload.write(big, GIB))
    ways = (*FORWARD, "--forward", "8082:127.0.0.1:8088")
    download = ["curl", "-sS", "--fail", "--max-time", "120", "http://127.0.0.1:8081/big"]
    upload = ["socat", "-u", "-b", "262144", f"FILE:{big}", "TCP:127.0.0.1:8082"]
    with (
        nginx(box, tmp_path, root),
        serving(box, read_to_end, ("127.0.0.1", 8088)) as server,
        extended_pair(box, tmp_path, lp=ways, asan=False),
        program(box, upload, tmp_path / "socat.log", status=None) as up,
        subprocess.Popen(box.command(download), stdout=subprocess.PIPE) as down,
    ):
        assert down.stdout is not None
        sha, size = hashlib.sha256(), 0
        while block := down.stdout.read(1 << 20):
            sha.update(block)
            size += len(block)
        assert down.wait() == 0
        assert Ending("eof", size, sha.hexdigest()) == wanted
        assert server.results.get(timeout=60) == wanted
        assert up.process.wait(timeout=10) == 0
    big.unlink()
