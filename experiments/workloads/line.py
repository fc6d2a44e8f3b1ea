# SPDX-License-Identifier: MIT
"""The start line: a client program that has started waits there until its run begins.

A program takes tenths of a second to start, in which warm pipes would cool down: the kernel shrinks
the window of a connection that was idle for its retransmission time-out. So the client starts
first. It says so by a file and goes when there is another: a virtual machine shares files, too. A
program that takes tenths of a second to end says by a third that its work is done.
"""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

READY, GO, DONE = "client.ready", "client.go", "client.done"
LOOK_S = 0.001
STARTS_S = 60.0


def wait(folder: Path) -> None:
    """The client's side: ready; on your marks."""
    (folder / READY).touch()
    while not (folder / GO).exists():
        time.sleep(LOOK_S)


def done(folder: Path) -> None:
    """The client's side, when all that it was to do went well."""
    (folder / DONE).touch()


def wait_done(folder: Path, client: "subprocess.Popen[Any]", seconds: float) -> bool:
    """The runner's; False if the client ended without."""
    deadline = time.monotonic() + seconds
    while not (folder / DONE).exists():
        if client.poll() is not None:
            return (folder / DONE).exists()
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)
    return True


def start(folder: Path, client: "subprocess.Popen[Any]", begin: Callable[[], None]) -> float:
    """The runner's: `begin` is called when the client is ready, which then goes at once. When:
    nothing that it does was before.

    A client that ends before has its own word about why.
    """
    deadline = time.monotonic() + STARTS_S
    while not (folder / READY).exists():
        if client.poll() is not None:
            break
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {STARTS_S:g} s for the client to start")
        time.sleep(LOOK_S)
    begin()
    went = time.monotonic()
    (folder / GO).touch()
    return went
