# SPDX-License-Identifier: MIT
"""Runs commands in the guest for the host, over one virtio-serial port.

One JSON object a line. From the host: {"id", "run": [ARG...], "cwd", "env", "tty"}, then for that
id {"in": BASE64}, {"eof": true}, {"signal": NUMBER}; {"off": true} ends the guest. To the host:
{"ready": KERNEL} once, then per id {"pid"}, {"out": BASE64, "fd": 1 or 2}..., {"taken": BYTES} of
its input, so that the host waits for a command that is slow to read, and {"exit": STATUS}, which is
negative for a signal.
"""

import base64
import contextlib
import fcntl
import json
import os
import platform
import pty
import selectors
import signal
import struct
import subprocess
import termios
from io import FileIO
from pathlib import Path
from typing import Any

NAME = "tm3"
CHUNK = 32768


def port() -> Path:
    """The device of our port; without udev no name in /dev leads there."""
    for entry in Path("/sys/class/virtio-ports").iterdir():
        if (entry / "name").exists() and (entry / "name").read_text().strip() == NAME:
            return Path("/dev") / entry.name
    raise SystemExit(f"no virtio port {NAME}")


class Command:
    """A running command: its process, and the ends of its input and outputs."""

    def __init__(self, number: int, wanted: dict[str, Any]) -> None:
        self.number = number
        size = wanted.get("tty")
        self.outputs: dict[int, int] = {}  # our end: 1 or 2
        if size:
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        else:
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.queued = bytearray()  # of its input, which the host keeps short
        self.process = subprocess.Popen(
            wanted["run"],
            cwd=wanted.get("cwd") or "/tm3",
            env={**os.environ, **(wanted.get("env") or {})},
            start_new_session=True,
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if size else None,
            bufsize=0,
            **pipes,
        )
        if size:
            os.close(theirs)
            self.outputs[ours] = 1
            self.input = FileIO(os.dup(ours), "w")
        else:
            self.outputs[self.process.stdout.fileno()] = 1
            self.outputs[self.process.stderr.fileno()] = 2
            self.input = self.process.stdin
        os.set_blocking(self.input.fileno(), False)
        self.tty = bool(size)
        self.ending = False  # its input, once all that is queued is read

    def take(self, data: bytes) -> None:
        if not self.ending:
            self.queued += data

    def end_of_input(self) -> None:
        if self.tty:
            self.take(b"\x04")
        else:
            self.ending = True

    def give(self) -> int:
        """Of what is queued, as much as it takes now; how many bytes are queued no longer."""
        before = len(self.queued)
        try:
            while self.queued and (written := self.input.write(self.queued)):
                del self.queued[:written]
        except OSError:  # nobody will read it
            self.queued.clear()
        return before - len(self.queued)

    def close(self) -> None:
        for stream in (self.input, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        if self.tty:
            for end in self.outputs:
                os.close(end)


class Agent:
    def __init__(self, port: int) -> None:
        self.port = port
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.port, selectors.EVENT_READ, None)
        self.commands: dict[int, Command] = {}
        self.rest = b""
        # A child's end wakes the selector.
        ours, theirs = os.pipe()
        os.set_blocking(theirs, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
        self.selector.register(ours, selectors.EVENT_READ, None)
        self.wakeup = ours

    def say(self, **message: Any) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.port, data) :]

    def obey(self, wanted: dict[str, Any]) -> None:
        if "off" in wanted:
            os.sync()
            subprocess.run(["/bin/busybox", "poweroff", "-f"], check=False)
            return
        number = wanted["id"]
        if "run" in wanted:
            self.begin(number, wanted)
            return
        command = self.commands.get(number)
        if command is None:
            return  # it has ended meanwhile
        if "in" in wanted:
            command.take(base64.b64decode(wanted["in"]))
            self.feed(command)
        elif "eof" in wanted:
            command.end_of_input()
            self.feed(command)
        elif "signal" in wanted:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(command.process.pid, wanted["signal"])

    def begin(self, number: int, wanted: dict[str, Any]) -> None:
        try:
            command = Command(number, wanted)
        except OSError as why:
            said = f"{wanted['run'][0]}: {why.strerror}\n".encode()
            self.say(id=number, out=base64.b64encode(said).decode(), fd=2)
            self.say(id=number, exit=127)
            return
        self.commands[number] = command
        for end in command.outputs:
            self.selector.register(end, selectors.EVENT_READ, command)
        self.say(id=number, pid=command.process.pid)

    def listen(self) -> None:
        data = os.read(self.port, CHUNK)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.obey(json.loads(line))

    def feed(self, command: Command) -> None:
        """Never waits for a command to read: the selector tells when it does."""
        if command.input.closed:
            return
        taken = command.give()
        if taken:
            self.say(id=command.number, taken=taken)
        waited = command.input in self.selector.get_map()
        if command.queued and not waited:
            self.selector.register(command.input, selectors.EVENT_WRITE, command)
        elif waited and not command.queued:
            self.selector.unregister(command.input)
        if command.ending and not command.queued:
            command.input.close()

    def forward(self, command: Command, end: int) -> bool:
        """Hands on what a command wrote; False at its end."""
        try:
            data = os.read(end, CHUNK)
        except BlockingIOError:
            return True
        except OSError:  # a terminal whose last user is gone
            data = b""
        if not data:
            self.selector.unregister(end)
            return False
        said = base64.b64encode(data).decode()
        self.say(id=command.number, out=said, fd=command.outputs[end])
        return True

    def reap(self) -> None:
        """Tells of commands that ended, after everything they wrote themselves."""
        for number, command in list(self.commands.items()):
            status = command.process.poll()
            if status is None:
                continue
            with contextlib.suppress(KeyError, ValueError):
                self.selector.unregister(command.input)
            for end in command.outputs:
                os.set_blocking(end, False)
                with contextlib.suppress(KeyError):
                    while self._waiting(end) and self.forward(command, end):
                        pass
                with contextlib.suppress(KeyError):
                    self.selector.unregister(end)
            command.close()
            del self.commands[number]
            self.say(id=number, exit=status)

    def _waiting(self, end: int) -> bool:
        self.selector.get_key(end)
        with selectors.PollSelector() as now:
            now.register(end, selectors.EVENT_READ)
            return bool(now.select(0))

    def run(self) -> None:
        self.say(ready=platform.release())
        while True:
            for key, events in self.selector.select():
                if key.fd == self.port:
                    self.listen()
                elif key.fd == self.wakeup:
                    os.read(self.wakeup, CHUNK)
                elif events & selectors.EVENT_WRITE:
                    self.feed(key.data)
                elif key.fd in self.selector.get_map():
                    self.forward(key.data, key.fd)
            self.reap()


if __name__ == "__main__":
    os.environ.update(
        PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        HOME="/root",
        LANG="C.UTF-8",
        TERM="linux",
        TM3_GUEST="1",
        PYTHONDONTWRITEBYTECODE="1",
    )
    Agent(os.open(port(), os.O_RDWR)).run()
