# SPDX-License-Identifier: MIT
"""Network namespaces of our own: made for one test, gone with it.

A namespace has no name on the machine. It lives as long as one `cat` that waits for its
standard input to close, so it disappears even when the test run is killed.
"""

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.grade.namespace import raise_loopback
from tests.relay.waiting import until

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _setns(path: str | Path) -> None:
    with Path(path).open("rb") as handle:
        if _libc.setns(handle.fileno(), CLONE_NEWNET):
            error = ctypes.get_errno()
            raise OSError(error, f"setns {path}: {os.strerror(error)}")


class Namespace:
    """One network namespace; `lo` is up in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        self.path = Path(f"/proc/{self._holder.pid}/ns/net")
        ours = Path("/proc/self/ns/net").readlink()
        until(f"namespace {name}", lambda: self.path.readlink() != ours)
        with self.entered():
            raise_loopback()

    @property
    def pid(self) -> int:
        return self._holder.pid

    def close(self) -> None:
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait(timeout=10)

    def command(self, argv: Sequence[str | Path]) -> list[str]:
        """`argv` as it is started inside; nsenter becomes the program, so the pid is its own."""
        return ["nsenter", f"--net={self.path}", "--", *map(str, argv)]

    def run(self, *argv: str | Path, stdin: str | None = None, seconds: float = 30.0) -> str:
        """Runs a command inside to its end; fails with what it said unless it succeeded."""
        done = subprocess.run(
            self.command(argv),
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        assert done.returncode == 0, f"{argv} ended with {done.returncode}: {done.stderr}"
        return done.stdout

    def ip(self, *args: str) -> str:
        return self.run("ip", *args)

    def nft(self, rules: str) -> None:
        """Loads nftables rules, written as in a file."""
        self.run("nft", "-f", "-", stdin=rules)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is inside; sockets made meanwhile stay inside for good."""
        back = f"/proc/{os.getpid()}/task/{_libc.gettid()}/ns/net"
        with Path(back).open("rb") as home:
            _setns(self.path)
            try:
                yield
            finally:
                if _libc.setns(home.fileno(), CLONE_NEWNET):
                    os._exit(70)  # a test run in the wrong namespace must not go on

    def open_socket(
        self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, protocol: int = 0
    ) -> socket.socket:
        with self.entered():
            return socket.socket(family, kind, protocol)

    def connect(self, address: tuple[str, int], seconds: float = 10.0) -> socket.socket:
        """A TCP connection from inside; its time-out stays at `seconds`."""
        sock = self.open_socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        sock.settimeout(seconds)
        try:
            sock.connect(address)
        except BaseException:
            sock.close()
            raise
        return sock

    def listening(self, port: int) -> bool:
        """Whether somebody listens there; asked from the kernel, so nobody sees a connection."""
        return bool(self.run("ss", "-Hltn", f"sport = :{port}").strip())


@contextmanager
def namespace(name: str) -> Iterator[Namespace]:
    ns = Namespace(name)
    try:
        yield ns
    finally:
        ns.close()


def veth(
    left: Namespace, left_address: str, right: Namespace, right_address: str, name: str = "wire"
) -> None:
    """A link between two namespaces; addresses carry their prefix length (10.0.0.1/24)."""
    ends = ((left, f"{name}-l", left_address), (right, f"{name}-r", right_address))
    left.ip(
        *("link", "add", ends[0][1], "type", "veth"),
        *("peer", "name", ends[1][1], "netns", str(right.pid)),
    )
    for ns, device, address in ends:
        ns.ip("address", "add", address, "dev", device)
        ns.ip("link", "set", device, "up")


@contextmanager
def two_on_a_link() -> Iterator[tuple[Namespace, Namespace]]:
    """10.77.0.1 (lp's side) and 10.77.0.2 (rp's side)."""
    with namespace("near") as near, namespace("far") as far:
        veth(near, "10.77.0.1/24", far, "10.77.0.2/24")
        yield near, far
