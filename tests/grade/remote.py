# SPDX-License-Identifier: MIT
"""The remote proxy under test: started, watched, its last words kept, ended by its own ids."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from . import namespace

F_SETPIPE_SZ = 1031
TAIL_BYTES = 8192


class RemoteProxy:
    """A process group of its own; whatever it prints is read and all but the end forgotten."""

    def __init__(self, command: list[str], pipes: int, max_files: int = 0) -> None:
        def prepare() -> None:
            namespace.die_with_parent()
            if max_files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))

        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*command, str(pipes)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=prepare,
        )
        assert self.process.stdout is not None
        self.output_fd = self.process.stdout.fileno()
        os.set_blocking(self.output_fd, False)
        with contextlib.suppress(OSError):  # a chatty RP should not wait for its reader
            fcntl.fcntl(self.output_fd, F_SETPIPE_SZ, 1 << 20)
        self.tail = b""
        self.printed = 0

    def read_output(self) -> bytes | None:
        """Take what RP printed: b"" at the end of it, None when there is nothing now."""
        try:
            chunk = os.read(self.output_fd, 1 << 17)
        except BlockingIOError:
            return None
        self.printed += len(chunk)
        self.tail = (self.tail + chunk)[-TAIL_BYTES:]
        return chunk

    def exit_text(self) -> str | None:
        """How RP ended, or None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        age = f"{time.monotonic() - self.started:.1f} s after it was started"
        if code < 0:
            return f"RP exited with {signal_text(-code)} {age}"
        hint = f" (a shell's word for {signal_text(code - 128)})" if 128 < code < 160 else ""
        return f"RP exited with status {code}{hint} {age}"

    def output_text(self) -> str:
        """The end of what RP printed; complete once it is stopped."""
        budget = self.printed + (1 << 24)  # an orphan may print for ever
        while self.printed < budget and self.read_output():
            pass
        text = self.tail.decode(errors="backslashreplace")
        return f"[... of {self.printed} bytes]\n{text}" if self.printed > TAIL_BYTES else text

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """RP does nothing meanwhile, so that it finds all that happened at once."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def stop(self) -> None:
        """End RP and what it started: its group, then what had left the group."""
        self.signal(signal.SIGKILL)
        self.process.wait()
        for _generation in range(100):
            orphans = _children()
            if not orphans:
                break
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()


def signal_text(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _children() -> list[int]:
    """Children of this process: only what RP left behind, adopted (see adopt_orphans)."""
    try:
        return [int(pid) for pid in Path("/proc/thread-self/children").read_text().split()]
    except OSError:  # a kernel without this list
        return []
