# SPDX-License-Identifier: MIT
"""A process that stands for a program in a virtual machine.

    python3 -S topologies/standin.py SOCKET -- ARG...

starts ARG... in the machine behind the socket (door.py), hands on what it writes, signals and its
status. So whoever starts, awaits and stops programs need not know where they run. It needs nothing
but the standard library, and so is there at once.
"""

import base64
import json
import os
import signal
import socket
import sys

HANDED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


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
