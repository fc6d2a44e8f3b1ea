# SPDX-License-Identifier: MIT
"""`make static`: each proxy is one small file that needs no other, and relays as ever."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.install.test_install import make
from tests.relay.ends import echo, read_exactly, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import BUILD, ROOT, Program, program
from tests.relay.proxies import EXTENDED, RP_READY

pytestmark = pytest.mark.timeout(600)  # the first of them builds

STATIC = BUILD / "static"
SIZE_MAX = 400 << 10  # 358 and 382 KiB were measured
RSS_MAX_KIB = 1024  # at rest; half as much was measured
BACKLOG = 4096


@pytest.fixture(scope="module")
def static() -> Path:
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl-gcc on this machine: make setup LISTS=install/packages.debian")
    make("static", seconds=500)
    return STATIC


def readelf(*words: str | Path) -> str:
    return subprocess.run(["readelf", *words], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("side", ["rp", "lp"])
def test_needs_no_other_file(static: Path, side: str) -> None:
    headers = readelf("-lS", "--wide", static / side)
    assert "LOAD" in headers and "INTERP" not in headers and "DYNAMIC" not in headers
    assert ".symtab" not in headers and ".debug" not in headers
    assert (static / side).stat().st_size <= SIZE_MAX


def at_rest(proxy: Program) -> None:
    assert proxy.rss_kib() <= RSS_MAX_KIB


def test_relays_and_is_small(static: Path, box: Namespace, tmp_path: Path) -> None:
    """Names are looked up by musl's own resolver, on a thread with musl's small stack."""
    with serving(box, echo) as server:
        rp_argv = [static / "rp", "--listen", "127.0.0.1", "4"]
        lp_argv = [static / "lp", "--names", "lp", "localhost", "4"]
        with program(box, rp_argv, tmp_path / "rp.log", ready=RP_READY) as rp:
            queue = box.run("ss", "-Hltn", "sport = :6000").split()[2]
            most = int(Path("/proc/sys/net/core/somaxconn").read_text())
            assert int(queue) == min(BACKLOG, most), "not as many may wait as elsewhere"
            with program(box, lp_argv, tmp_path / "lp.log", ready=EXTENDED) as lp:
                at_rest(rp)
                at_rest(lp)
                with socks(box, "localhost", server.port) as sock:
                    sock.sendall(b"small" * 20000)
                    assert read_exactly(sock, 100000) == b"small" * 20000


def test_says_what_is_missing(tmp_path: Path) -> None:
    argv = ["make", "-C", ROOT, f"BUILD={tmp_path}", "STATIC_CC=no-such-cc", "static"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 2
    assert "static: no no-such-cc here: apt-get install musl-tools" in done.stderr
