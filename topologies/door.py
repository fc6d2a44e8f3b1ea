# SPDX-License-Identifier: MIT
"""Programs of a lab in a virtual machine, each with a process here that stands for it.

The door listens for these processes, see standin.py, and starts in the machine what each asks for.
"""

import base64
import contextlib
import json
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from base.scope import Scope
from base.sources import ROOT
from vm.machine import Machine


class Door(Scope):
    """Listens on a socket of the file system while the block runs."""

    def __init__(self, machine: Machine, path: Path) -> None:
        self.machine, self.path = machine, path

    def open(self) -> None:
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.bind(str(self.path))
        self._sock.listen()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self, error: BaseException | None) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        self._thread.join(timeout=5)
        self.path.unlink(missing_ok=True)

    def enter(self, argv: Sequence[str | Path]) -> list[str]:
        """The command here that runs `argv` there."""
        script = ROOT / "topologies" / "standin.py"
        return [sys.executable, "-S", str(script), str(self.path), "--", *map(str, argv)]

    def _listen(self) -> None:
        while True:
            try:
                conn, _ = self._sock.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn: socket.socket) -> None:
        """One program, until it ends or its stand-in does."""
        lock = threading.Lock()

        def tell(**message: Any) -> None:
            with lock, contextlib.suppress(OSError):
                conn.sendall(json.dumps(message).encode() + b"\n")

        def sink(fd: int) -> Any:
            return lambda data: tell(fd=fd, out=base64.b64encode(data).decode())

        with conn, conn.makefile("rb") as lines:
            wanted = json.loads(lines.readline())
            remote = self.machine.start(
                wanted["run"], sink(1), sink(2), cwd=str(ROOT), env=wanted["env"]
            )
            remote.end_of_input()

            def finish() -> None:
                with contextlib.suppress(RuntimeError):
                    tell(exit=remote.wait())
                with contextlib.suppress(OSError):
                    conn.shutdown(socket.SHUT_RDWR)

            threading.Thread(target=finish, daemon=True).start()
            with contextlib.suppress(OSError):
                for line in lines:
                    remote.send_signal(json.loads(line)["signal"])
            if remote.poll() is None:  # the stand-in was killed
                remote.send_signal(signal.SIGKILL)
