# SPDX-License-Identifier: MIT
"""The road that redirected bytes take in these tests.

near (tm3.ko, lp, curl) --- 10.77.0.0/24 --- far (rp, nginx)
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.relay import payload, records
from tests.relay.netns import Namespace
from tests.relay.programs import Program
from tests.relay.proxies import Pair, local_proxy, pair, remote_proxy
from tests.relay.servers import nginx
from tests.vm import module

RP = "10.77.0.2"
DEVICE = "wire-l"
PAGE_BYTES = 700_001
SLOW_BYTES_PER_S = 50_000


def words(ports: str = "80", **more: str) -> dict[str, str]:
    """The module's parameters for this road."""
    return {"remoteProxyIP": RP, "fwdInterface": DEVICE, "portList": ports, **more}


def fetch(ns: Namespace, *, port: int = 80, seconds: float = 30.0, path: str = "page") -> bytes:
    """What an unmodified curl gets; a failure names curl's reason."""
    code, got, err = curl(ns, port=port, seconds=seconds, path=path)
    assert code == 0, err
    return got


def curl(
    ns: Namespace, *args: str, port: int = 80, seconds: float = 30.0, path: str = "page"
) -> tuple[int, bytes, str]:
    url = f"http://{RP}:{port}/{path}"
    argv = ["curl", "-sS", "--fail", "--max-time", f"{seconds:g}", *args, url]
    done = subprocess.run(ns.command(argv), capture_output=True, timeout=seconds + 10)
    return done.returncode, done.stdout, done.stderr.decode()


@dataclass(frozen=True)
class Road:
    near: Namespace
    far: Namespace
    page: bytes
    tmp: Path
    log: module.Log

    @property
    def stats(self) -> Path:
        return self.tmp / "lp.jsonl"

    def relayed(self) -> list[str]:
        """Where the connections went that lp has relayed and seen the end of."""
        return [record["dst"] for record in records.of(self.stats, "conn")]

    def ends(self) -> list[str]:
        return [record["end"] for record in records.of(self.stats, "conn")]

    @contextmanager
    def server(self, port: int) -> Iterator[None]:
        """The page; under /slow/ at a limited rate."""
        options = {"port": port, "address": RP, "slow_bytes_per_s": SLOW_BYTES_PER_S}
        with nginx(self.far, self.tmp, self.tmp / "root", **options):
            yield

    @contextmanager
    def proxies(self, *lp: str) -> Iterator[Pair]:
        args = ["--stats", str(self.stats), *lp]
        with pair(self.far, self.tmp, lp=args, lp_ns=self.near, to=RP, asan=False) as both:
            yield both

    @contextmanager
    def rp(self) -> Iterator[None]:
        with remote_proxy(self.far, self.tmp, asan=False):
            yield

    @contextmanager
    def lp(self, *args: str, name: str = "lp") -> Iterator[Program]:
        """One that may be killed; its records go where those of others went."""
        args = ("--stats", str(self.stats), *args)
        with local_proxy(self.near, self.tmp, *args, to=RP, asan=False, name=name) as proxy:
            yield proxy


@contextmanager
def built(two: tuple[Namespace, Namespace], tmp: Path, log: module.Log) -> Iterator[Road]:
    """With a web server on port 80."""
    root = tmp / "root"
    root.mkdir()
    payload.write(root / "page", PAGE_BYTES)
    way = Road(*two, (root / "page").read_bytes(), tmp, log)
    with way.server(80):
        yield way


def established(ns: Namespace, port: int) -> int:
    """lp's ends of connections that were redirected to that port."""
    return len(re.findall(r"\n", ns.run("ss", "-Htn", "state", "established", f"sport = :{port}")))
