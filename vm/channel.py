# SPDX-License-Identifier: MIT
"""The host's end of the agent's port: commands in the guest, any number at once."""

import base64
import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Sink = Callable[[bytes], object]
WINDOW = 1 << 18  # bytes of a command's input that may be under way, beside what its pipe holds


class ChannelClosed(RuntimeError):
    """The guest is gone."""


class Remote:
    """A command in the guest. What it writes goes to the two sinks as it comes."""

    def __init__(
        self, channel: "Channel", number: int, argv: Sequence[str], sinks: list[Sink]
    ) -> None:
        self.argv = list(argv)
        self.pid: int | None = None  # in the guest
        self.returncode: int | None = None
        self._channel, self._number, self._sinks = channel, number, sinks
        self._ended = threading.Event()
        self._begun = threading.Event()
        self._unread = 0
        self._reads = threading.Condition()

    def take(self, message: Mapping[str, Any]) -> None:
        """From the channel's thread."""
        if "out" in message:
            self._sinks[message["fd"] - 1](base64.b64decode(message["out"]))
        elif "pid" in message:
            self.pid = message["pid"]
            self._begun.set()
        elif "taken" in message:
            with self._reads:
                self._unread -= message["taken"]
                self._reads.notify_all()
        elif "exit" in message:
            self.returncode = message["exit"]
            self.end()

    def end(self) -> None:
        self._begun.set()
        self._ended.set()
        with self._reads:
            self._reads.notify_all()

    def write(self, data: bytes, timeout: float | None = None) -> None:
        """At the pace at which the command reads. TimeoutExpired: it read nothing for so long."""
        for start in range(0, len(data), 16384):
            part = data[start : start + 16384]
            with self._reads:
                if not self._reads.wait_for(self._has_room, timeout):
                    raise subprocess.TimeoutExpired(self.argv, timeout or 0)
                self._unread += len(part)
            self._channel.say(id=self._number, **{"in": base64.b64encode(part).decode()})

    def _has_room(self) -> bool:
        return self._unread < WINDOW or self._ended.is_set()

    def end_of_input(self) -> None:
        self._channel.say(id=self._number, eof=True)

    def send_signal(self, number: int) -> None:
        """To the command and all its children."""
        self._channel.say(id=self._number, signal=int(number))

    def poll(self) -> int | None:
        return self.returncode

    def ended(self, within: float = 0.0) -> bool:
        """Whether it has ended, or the guest has; waits up to that long."""
        return self._ended.wait(within)

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(self.argv, timeout or 0)
        if self.returncode is None:
            raise ChannelClosed(f"the guest ended while it ran {' '.join(self.argv)}")
        return self.returncode

    def begun(self, timeout: float) -> None:
        if not self._begun.wait(timeout):
            raise subprocess.TimeoutExpired(self.argv, timeout)


class Channel:
    """Reads in a thread of its own until the guest is gone."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._commands: dict[int, Remote] = {}
        self._lock = threading.Lock()
        self._next = 0
        self.ready: str | None = None  # the guest's kernel
        self.gone = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def say(self, **message: Any) -> None:
        with self._lock, contextlib.suppress(OSError):  # gone: the reader has noticed
            self._sock.sendall(json.dumps(message).encode() + b"\n")

    def start(
        self,
        argv: Sequence[str | Path],
        out: Sink,
        err: Sink,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        tty: tuple[int, int] | None = None,
    ) -> Remote:
        words = [str(word) for word in argv]
        with self._lock:
            self._next += 1
            number = self._next
            remote = Remote(self, number, words, [out, err])
            self._commands[number] = remote
        if self.gone:
            remote.end()
        self.say(id=number, run=words, cwd=cwd, env=dict(env or {}), tty=tty)
        return remote

    def off(self) -> None:
        self.say(off=True)

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._sock.makefile("rb") as lines:
            for line in lines:
                self._take(json.loads(line))
        self.gone = True
        for remote in list(self._commands.values()):
            remote.end()

    def _take(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self.ready = message["ready"]
            return
        remote = self._commands.get(message["id"])
        if remote:
            remote.take(message)
            if "exit" in message:
                del self._commands[message["id"]]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=10)
        self._sock.close()
