# SPDX-License-Identifier: MIT
"""What happens to pipes of the extension: the network resets them, or goes dark."""

import errno
import random
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.grade import sockdiag
from tests.relay import wire_ext
from tests.relay.netns import Namespace
from tests.relay.waiting import until

UP = "tcp dport {rp} tcp sport {lp} counter drop"
DOWN = "tcp sport {rp} tcp dport {lp} counter drop"
ESTABLISHED = "01"
SOCK_DESTROY = 21
NLM_F_ACK = 4
LOOPBACK = sockdiag.ADDRESS.pack(socket.inet_aton("127.0.0.1"))


class Pipes:
    """The pipes between an lp and an rp that are both in one namespace."""

    def __init__(self, ns: Namespace, seed: int = 1) -> None:
        self.ns = ns
        self.rng = random.Random(seed)
        self.killed = 0
        with ns.entered():
            kind = socket.SOCK_RAW
            self.netlink = socket.socket(socket.AF_NETLINK, kind, sockdiag.NETLINK_SOCK_DIAG)
        self.netlink.settimeout(10)

    def ports(self) -> list[int]:
        """lp's ports, one for each pipe that is up."""
        table = Path(f"/proc/{self.ns.pid}/net/tcp").read_text().splitlines()[1:]
        rows = [line.split() for line in table]
        ends = [[int(row[i].partition(":")[2], 16) for i in (1, 2)] for row in rows]
        up = [row[3] == ESTABLISHED for row in rows]
        return [
            lp for (lp, rp), is_up in zip(ends, up, strict=True) if is_up and rp == wire_ext.PORT
        ]

    def kill_one(self) -> None:
        """One end of some pipe has its socket closed under it; the other end gets a reset."""
        ports = self.ports()
        if not ports:
            return
        ends = [wire_ext.PORT, self.rng.choice(ports)]
        self.rng.shuffle(ends)
        self.killed += self._destroy(*ends)

    def _destroy(self, port: int, peer: int) -> bool:
        """Whether there was such a socket; what `ss -K` does."""
        any_cookie = sockdiag.ANY_COOKIE
        body = (
            sockdiag.REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0xFFFFFFFF)
            + sockdiag.PORTS.pack(port, peer)
            + LOOPBACK * 2
            + sockdiag.TAIL.pack(0, any_cookie, any_cookie)
        )
        flags = sockdiag.NLM_F_REQUEST | NLM_F_ACK
        size = sockdiag.HEADER.size + len(body)
        self.netlink.send(sockdiag.HEADER.pack(size, SOCK_DESTROY, flags, 1, 0) + body)
        (code,) = struct.unpack_from("=i", self.netlink.recv(8192), sockdiag.HEADER.size)
        assert code in (0, -errno.ENOENT), f"SOCK_DESTROY: {code}"
        return code == 0

    def close(self) -> None:
        self.netlink.close()

    @contextmanager
    def dark(self, *rules: str, port: int | None = None) -> Iterator[None]:
        """What the rules name is dropped, of the pipe at lp's `port` or of all; nobody is told.

        It lasts until each of them had something to drop.
        """
        lp = "1-65535" if port is None else str(port)
        lines = "\n".join(rule.format(rp=wire_ext.PORT, lp=lp) for rule in rules)
        chain = f"type filter hook input priority 0\n{lines}"
        self.ns.nft(f"table inet dark {{\nchain in {{\n{chain}\n}}\n}}\n")
        try:
            yield
            until("each rule to drop something", lambda: self._dropping() == len(rules))
        finally:
            self.ns.run("nft", "delete", "table", "inet", "dark")

    def _dropping(self) -> int:
        told = self.ns.run("nft", "list", "table", "inet", "dark")
        return len(re.findall(r"packets [1-9]", told))


@contextmanager
def pipes_in(ns: Namespace) -> Iterator[Pipes]:
    pipes = Pipes(ns)
    try:
        yield pipes
    finally:
        pipes.close()


def pipes_of_mptcp(ns: Namespace) -> int:
    """Pipes that did not go on as plain TCP; lp's ends of them."""
    return len(ns.run("ss", "-HMn", "state", "established", "dport = :6010").splitlines())
