# SPDX-License-Identifier: MIT
"""Programs of a lab in a virtual machine, each with a process here that stands for it.

    python -m topologies.door SOCKET -- ARG...

starts ARG... in the machine behind the socket, hands on what it writes, signals and its status.
So whoever starts, awaits and stops programs need not know where they run.
"""

import base64
import contextlib
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vm.machine import Machine

ROOT = Path(__file__).resolve().parent.parent
HANDED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Door:
    """Listens on a socket of the file system while the block runs."""

    def __init__(self, machine: "Machine", path: Path) -> None:
        self.machine, self.path = machine, path

    def __enter__(self) -> "Door":
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.bind(str(self.path))
        self._sock.listen()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        self._thread.join(timeout=5)
        self.path.unlink(missing_ok=True)

    def enter(self, argv: Sequence[str | Path]) -> list[str]:
        """The command here that runs `argv` there."""
        script = ROOT / "topologies" / "door.py"
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


def _environment() -> dict[str, str]:
    """What a lab's programs are told, by name: the rest is this machine's."""
    return {key: value for key, value in os.environ.items() if key.startswith(("TM3_", "PYTHON"))}


def main(path: str, argv: list[str]) -> int:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    sock.sendall(json.dumps({"run": argv, "env": _environment()}).encode() + b"\n")

    def hand_on(number: int, _: object) -> None:
        sock.sendall(json.dumps({"signal": number}).encode() + b"\n")

    for number in HANDED_ON:
        signal.signal(number, hand_on)
    with sock.makefile("rb") as lines:
        for line in lines:
            message = json.loads(line)
            if "exit" in message:
                return message["exit"]
            data = base64.b64decode(message["out"])
            while data:
                data = data[os.write(message["fd"], data) :]
    print("the machine is gone", file=sys.stderr)
    return 1


def end_like(status: int) -> None:
    """A program that a signal ended looks so here too."""
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    end_like(main(sys.argv[1], sys.argv[3:]))
