# SPDX-License-Identifier: MIT
"""The bench of one check: a remote proxy, a fake local proxy, servers, and one clock for all.

Everything runs in one thread. A check says what it does and then waits for a condition with
until(), which names what is waited for; only while waiting are sockets served. Whatever goes
wrong meanwhile (RP exits, closes a pipe, sends what it must not) ends the check with its cause.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .failure import Failure
from .remote import RemoteProxy
from .sockdiag import SocketDiag

if TYPE_CHECKING:
    from .lp import Conn, LocalProxy
    from .server import Server

PORT = 6000
# How long anything may take that a working RP does at once.
PROMPT_S = 5.0
TICK_S = 0.02


class Lab:
    def __init__(
        self, command: list[str], seconds: float, patience: float = 1.0, isolated: bool = True
    ) -> None:
        self.command = command
        self.patience = patience
        self.isolated = isolated
        self.deadline = time.monotonic() + seconds * patience
        self.random = random.Random(6000)
        self.epoll = select.epoll()
        self.diag = SocketDiag()
        self.handlers: dict[int, Callable[[int], None]] = {}
        self.remote: RemoteProxy | None = None
        self.remote_may_exit = False
        self.lps: list[LocalProxy] = []
        self.servers: list[Server] = []
        self.dialled: dict[str, Conn] = {}  # by the destination address, each used once

    # -- RP ---------------------------------------------------------------------------------

    def start_remote(self, pipes: int, max_files: int = 0) -> None:
        self.remote = RemoteProxy(self.command, pipes, max_files)
        self.watch(self.remote.output_fd, select.EPOLLIN, self._on_output)

    def _on_output(self, _mask: int) -> None:
        assert self.remote is not None
        if self.remote.read_output() == b"":
            self.unwatch(self.remote.output_fd)

    def require_alive(self, waiting_for: str) -> None:
        gone = self.remote.exit_text() if self.remote else None
        if gone and not self.remote_may_exit:
            raise Failure(f"{gone}, while the grader waited for {waiting_for}")

    def close(self) -> None:
        # Pipes first and by reset, so that RP's end of them does not linger on port 6000.
        for lp in self.lps:
            lp.close()
        if self.remote:
            self.remote.stop()
        for server in self.servers:
            server.close()
        self.diag.close()
        self.epoll.close()

    # -- waiting ----------------------------------------------------------------------------

    def watch(self, fd: int, events: int, handler: Callable[[int], None]) -> None:
        if fd in self.handlers:
            self.epoll.modify(fd, events)
        else:
            self.epoll.register(fd, events)
        self.handlers[fd] = handler

    def unwatch(self, fd: int) -> None:
        if self.handlers.pop(fd, None):
            self.epoll.unregister(fd)

    def pump(self, seconds: float) -> None:
        """Serve all sockets once, waiting at most this long for one to be ready."""
        uploading = [lp.fill() for lp in self.lps]
        for fd, mask in self.epoll.poll(0 if any(uploading) else seconds, 512):
            handler = self.handlers.get(fd)
            if handler:
                handler(mask)

    def until(
        self,
        condition: Callable[[], object],
        what: str,
        seconds: float = PROMPT_S,
        progress: Callable[[], object] | None = None,
    ) -> None:
        """Serve sockets until the condition is true; a failure after these seconds.

        What takes long shows progress: a value that changes. Once it stands still for the time
        of a prompt answer, waiting any longer would be in vain.
        """
        started = changed = time.monotonic()
        end = min(started + seconds * self.patience, self.deadline)
        value = None
        while not condition():
            self.require_alive(what)
            now = time.monotonic()
            if progress and progress() != value:
                value, changed = progress(), now
            if now > end or (progress and now > changed + PROMPT_S * self.patience):
                raise Failure(f"waited {now - started:.1f} s in vain for {what}{self._hints()}")
            try:
                self.pump(TICK_S)
            except Failure as failure:
                # A crash shows first as a pipe that closes: name the crash instead.
                self._grant_exit()
                self.require_alive(what)
                raise failure from None

    def _grant_exit(self) -> None:
        if self.remote:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.remote.process.wait(timeout=0.3)

    def watch_for(self, seconds: float, forbidden: Callable[[], object], what: str) -> None:
        """Serve sockets for so long, during which the forbidden must not become true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.require_alive(f"{seconds:g} s to pass")
            self.pump(min(TICK_S, max(0.0, end - time.monotonic())))
            if forbidden():
                raise Failure(what)

    def listen(self, seconds: float) -> None:
        """Serve sockets for so long, so that what RP should not send is noticed."""
        self.watch_for(seconds, lambda: False, "")

    def settle(self, seconds: float = 0.1) -> None:
        """Wait until RP has read all that LP sent, so that what follows arrives after it.

        An RP that is slow, or that reads one pipe at a time, is not waited for any longer: any
        order of arrival must do.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.pump(0)
            if not any(lp.unsent or self._unread(lp) for lp in self.lps):
                return
            os.sched_yield()
        self.require_alive("RP to read its pipes")

    def _unread(self, lp: LocalProxy) -> bool:
        return any(self.diag.unread(pipe.sock) for pipe in lp.pipes if not pipe.closed)

    def _hints(self) -> str:
        """What may explain that something did not come."""
        hints = [hint for lp in self.lps for hint in lp.hints()]
        hints += [hint for server in self.servers for hint in server.hints()]
        return "".join(f"; {hint}" for hint in hints[:3])
