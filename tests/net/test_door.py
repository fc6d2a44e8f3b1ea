# SPDX-License-Identifier: MIT
"""A program in a machine and the process that stands for it; the machine is this one."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from base.shell import until
from topologies.door import Door


class Here:
    """Of a program that vm.channel.Remote stands for, what a door uses."""

    def __init__(self, argv: Sequence[str], sinks: list[Callable[[bytes], object]]) -> None:
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        files = (self.process.stdout, self.process.stderr)
        self._readers = [
            threading.Thread(target=_hand_on, args=pair) for pair in zip(files, sinks, strict=True)
        ]
        for reader in self._readers:
            reader.start()

    def end_of_input(self) -> None:
        """It has none."""

    def wait(self) -> int:
        for reader in self._readers:
            reader.join()
        return self.process.wait()

    def poll(self) -> int | None:
        return self.process.poll()

    def send_signal(self, number: int) -> None:
        self.process.send_signal(number)


def _hand_on(file: Any, sink: Callable[[bytes], object]) -> None:
    while data := os.read(file.fileno(), 65536):
        sink(data)


class Machine:
    def __init__(self) -> None:
        self.started: list[Here] = []

    def start(
        self,
        argv: Sequence[str],
        *sinks: Callable[[bytes], object],
        cwd: str,
        env: Mapping[str, str],
    ) -> Here:
        assert Path(cwd).is_dir() and all(it.startswith(("TM3_", "PYTHON")) for it in env)
        self.started.append(Here(argv, list(sinks)))
        return self.started[-1]


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with Door(Machine(), tmp_path / "door") as made:  # type: ignore[arg-type]
        yield made
    assert not (tmp_path / "door").exists()


def test_what_a_program_writes_and_its_status_come_through(door: Door) -> None:
    words = ["sh", "-c", "seq 100000; echo it failed >&2; exit 3"]
    done = subprocess.run(
        door.enter(words), capture_output=True, text=True, timeout=20, check=False
    )
    assert done.stdout.split() == [str(n) for n in range(1, 100_001)]
    assert (done.stderr, done.returncode) == ("it failed\n", 3)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, -15), (signal.SIGUSR1, 7)])
def test_signals_go_through_and_their_effect_comes_back(
    door: Door, number: signal.Signals, status: int
) -> None:
    words = ["sh", "-c", "trap 'exit 7' USR1; echo ready; while :; do sleep 0.05; done"]
    with subprocess.Popen(door.enter(words), stdout=subprocess.PIPE, text=True) as standin:
        assert standin.stdout is not None and standin.stdout.readline() == "ready\n"
        standin.send_signal(number)
        assert standin.wait(10) == status


def test_with_its_stand_in_a_program_ends(door: Door) -> None:
    words = ["sh", "-c", "echo ready; exec sleep 600"]
    with subprocess.Popen(door.enter(words), stdout=subprocess.PIPE, text=True) as standin:
        assert standin.stdout is not None and standin.stdout.readline() == "ready\n"
        standin.kill()
    started = door.machine.started  # type: ignore[attr-defined]
    until("the machine to have it", lambda: started)
    (program,) = started
    until("the program to end", lambda: program.poll() is not None)
    assert program.poll() == -signal.SIGKILL
