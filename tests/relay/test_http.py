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
from tests.relay.programs import finish
from tests.relay.proxies import Pair, extended_pair, pair
from tests.relay.servers import nginx
from tests.relay.waiting import until

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
def test_a_gibibyte_down_by_hash(box: Namespace, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    wanted = payload.write(root / "big", GIB)
    sha = hashlib.sha256()
    size = 0
    with nginx(box, tmp_path, root), extended_pair(box, tmp_path, lp=FORWARD, asan=False):
        argv = ["curl", "-sS", "--fail", "--max-time", "120", "http://127.0.0.1:8081/big"]
        with subprocess.Popen(box.command(argv), stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            while block := client.stdout.read(1 << 20):
                sha.update(block)
                size += len(block)
        assert client.returncode == 0
    (root / "big").unlink()
    assert (size, sha.hexdigest()) == (GIB, wanted)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_gibibyte_up_by_hash(box: Namespace, tmp_path: Path) -> None:
    big = tmp_path / "big"
    wanted = payload.write(big, GIB)
    with serving(box, read_to_end, ("127.0.0.1", 8080)) as server:
        with extended_pair(box, tmp_path, lp=FORWARD, asan=False):
            argv = ["socat", "-u", "-b", "262144", f"FILE:{big}", "TCP:127.0.0.1:8081"]
            code, _, err = finish(argv, box, 120)
            assert code == 0, err
            got = until("the server to see the end", lambda: not server.results.empty(), 60)
            assert got
        assert server.results.get() == Ending("eof", GIB, wanted)
    big.unlink()
