# SPDX-License-Identifier: MIT
"""linkem as a process: started, asked, changed and stopped from Python."""

import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Value = float | int | bool | str | Path | None
Json = dict[str, Any]

READY_S = 10.0
STOP_S = 10.0
ANSWER_S = 10.0


class LinkemError(RuntimeError):
    """linkem did not start, refused a command, or ended badly."""


def words(parameters: Mapping[str, Value]) -> str:
    """Parameters of a direction as linkem reads them; None is `none`, a bool yes or no."""
    return " ".join(f"{key}={_escaped(value)}" for key, value in parameters.items())


def _escaped(value: Value) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return "".join(f"\\{c}" if c.isspace() or c == "\\" else c for c in text)


class Linkem:
    """One running linkem. `ready` is what it said of its devices when it was."""

    def __init__(self, argv: Sequence[str], folder: Path) -> None:
        self.folder = folder
        self.truth_path = folder / "truth.json"
        self.control_path = folder / "control"
        self.log_path = folder / "linkem.log"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*argv, "--truth", str(self.truth_path), "--control", str(self.control_path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._socket: socket.socket | None = None
        try:
            self.ready: Json = self._await_ready()
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    def _await_ready(self) -> Json:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        said = b""
        deadline = time.monotonic() + READY_S
        while not said.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise LinkemError(f"linkem was not ready within {READY_S:g} s: {self.log}")
            part = os.read(fd, 65536)
            if not part:
                code = self._process.wait(timeout=STOP_S)
                raise LinkemError(f"linkem ended with {code}: {self.log.strip()}")
            said += part
        return json.loads(said)

    def command(self, line: str) -> Json:
        """One command of the control socket; fails with linkem's own words."""
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(ANSWER_S)
            self._socket.connect(str(self.control_path))
        self._socket.sendall(line.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            part = self._socket.recv(65536)
            if not part:
                raise LinkemError(f"linkem hung up on '{line}': {self.log}")
            answer += part
        told = json.loads(answer)
        if told.get("ok") is False:
            raise LinkemError(told["error"])
        return told

    def get(self) -> Json:
        return self.command("get")

    def set(self, direction: str, **parameters: Value) -> Json:
        """Changes `ab`, `ba` or `both`; returns what is in force now."""
        return self.command(f"set {direction} {words(parameters)}")

    def truth(self) -> Json:
        """The counters at this moment."""
        return self.command("truth")

    def stop(self) -> Json:
        """Ends it; the truth it wrote."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            code = self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise LinkemError(f"linkem did not end within {STOP_S:g} s: {self.log}") from None
        self._close()
        if code != 0:
            raise LinkemError(f"linkem ended with {code}: {self.log.strip()}")
        return json.loads(self.truth_path.read_text())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=STOP_S)
        self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process.stdout is not None:
            self._process.stdout.close()


def command_line(
    binary: Path,
    a: int | str | Path,
    b: int | str | Path,
    *,
    ab: Mapping[str, Value] | None = None,
    ba: Mapping[str, Value] | None = None,
    seed: int = 1,
    options: Sequence[str | Path] = (),
) -> list[str]:
    """`a` and `b` are namespaces: a process id, a name as of `ip netns`, or a path."""
    argv = [str(binary), "--a", str(a), "--b", str(b), "--seed", str(seed), "--with-parent"]
    if ab:
        argv += ["--ab", words(ab)]
    if ba:
        argv += ["--ba", words(ba)]
    return argv + [str(option) for option in options]


@contextmanager
def linkem(argv: Sequence[str], folder: Path) -> Iterator[Linkem]:
    """Runs it until the block ends; whether it ended well is asked by stop()."""
    link = Linkem(argv, folder)
    try:
        yield link
        link.stop()
    finally:
        link.kill()
