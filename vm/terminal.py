# SPDX-License-Identifier: MIT
"""A command in the guest whose input and output are this terminal, or whatever is in its place."""

import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from base.sources import TOLD, commit
from vm.channel import Remote
from vm.machine import Machine, to_stderr, to_stdout


def attached(guest: Machine, argv: Sequence[str], env: Mapping[str, str] | None = None) -> int:
    """Runs it to its end; its status as a shell would tell it. Ctrl-C is for the command."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    size = os.get_terminal_size(sys.stdin.fileno()) if terminal else None
    remote = guest.start(
        argv,
        to_stdout,
        to_stderr,
        tty=(size.lines, size.columns) if size else None,
        env={TOLD: commit() or "", **(env or {})}
        | ({"TERM": os.environ.get("TERM", "linux")} if size else {}),
    )
    with _raw() if terminal else _interrupts(remote):
        _feed(remote)
        status = remote.wait()
    return status if status >= 0 else 128 - status


def _feed(remote: Remote) -> None:
    """Hands on what is typed until the command ends."""
    open_ = True
    while not remote.ended(within=0.0 if open_ else 0.5):
        if open_ and select.select([sys.stdin], [], [], 0.05)[0]:
            data = os.read(sys.stdin.fileno(), 16384)
            if data:
                remote.write(data)
            else:
                remote.end_of_input()
                open_ = False


@contextmanager
def _raw() -> Iterator[None]:
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextmanager
def _interrupts(remote: Remote) -> Iterator[None]:
    def hand_on(number: int, _: object) -> None:
        # By another thread: this one may just be in the middle of saying something.
        threading.Thread(target=remote.send_signal, args=(number,), daemon=True).start()

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
