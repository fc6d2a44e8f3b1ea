# SPDX-License-Identifier: MIT
"""The agent and the host's end of its port, without a guest: a pair of sockets is the port.

Nobody tells it to switch the machine off: that is this one.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from base.shell import until
from vm import terminal
from vm.channel import WINDOW, Channel, Remote

ROOT = Path(__file__).parents[2]
MUCH = os.urandom(3_000_000)
SECONDS = 60.0

pytestmark = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") == "1", reason="of the machine that runs guests, not of a guest"
)


@pytest.fixture
def channel() -> Iterator[Channel]:
    ours, theirs = socket.socketpair()
    argv = [sys.executable, "-c", "from vm.guest.agent import Agent; Agent(0).run()"]
    with subprocess.Popen(argv, stdin=theirs, cwd=ROOT) as agent:
        theirs.close()
        channel = Channel(ours)
        try:
            until("the agent", lambda: channel.ready, SECONDS)
            yield channel
        finally:
            agent.kill()
            left = [it.pid for it in channel._commands.values() if it.pid]  # by a test that failed
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            channel.close()


def start(
    channel: Channel, *argv: str, tty: tuple[int, int] | None = None
) -> tuple[Remote, bytearray]:
    out = bytearray()
    return channel.start(argv, out.extend, out.extend, cwd="/", tty=tty), out


def given(remote: Remote, data: bytes) -> threading.Thread:
    """By another thread: it may take as long as the command does."""

    def give() -> None:
        remote.write(data)
        remote.end_of_input()

    giver = threading.Thread(target=give, daemon=True)
    giver.start()
    return giver


@pytest.mark.parametrize("argv", [("cat",), ("od", "-v", "-A", "n", "-t", "x1", "-w1000")])
def test_who_is_given_much_may_say_more(channel: Channel, argv: Sequence[str]) -> None:
    remote, out = start(channel, *argv)
    given(remote, MUCH)
    assert remote.wait(SECONDS) == 0
    assert out == MUCH or bytes.fromhex(out.decode()) == MUCH


def test_who_reads_nothing_keeps_nobody_else_waiting(channel: Channel) -> None:
    """Not the port, which is all others' as well: what it does not read stays with the host."""
    deaf, _ = start(channel, "sleep", "600")
    giver = given(deaf, MUCH)
    other, out = start(channel, "echo", "it runs")
    assert other.wait(SECONDS) == 0
    assert out == b"it runs\n"
    assert giver.is_alive()
    deaf.send_signal(signal.SIGTERM)
    assert deaf.wait(SECONDS) == -signal.SIGTERM
    giver.join(SECONDS)
    assert not giver.is_alive()


def test_a_command_that_reads_nothing_takes_only_so_long(channel: Channel) -> None:
    deaf, _ = start(channel, "sleep", "600")
    deaf.write(MUCH[:WINDOW], timeout=0)
    with pytest.raises(subprocess.TimeoutExpired):
        deaf.write(MUCH, timeout=0.1)
    deaf.send_signal(signal.SIGKILL)
    assert deaf.wait(SECONDS) == -signal.SIGKILL


def test_ctrl_c_may_come_in_the_middle_of_a_message(channel: Channel) -> None:
    remote, _ = start(channel, "sleep", "600")
    with terminal._interrupts(remote), channel._lock:
        signal.raise_signal(signal.SIGINT)
    assert remote.wait(SECONDS) == -signal.SIGINT


def test_what_nobody_will_read_is_dropped(channel: Channel) -> None:
    remote, out = start(channel, "sh", "-c", "exec <&-; echo closed; sleep 600")
    until("its input to be closed", lambda: out, SECONDS)
    remote.write(MUCH, timeout=SECONDS)
    remote.end_of_input()
    assert remote.poll() is None
    remote.send_signal(signal.SIGKILL)
    assert remote.wait(SECONDS) == -signal.SIGKILL


def test_a_terminal_is_given_its_input_and_its_end(channel: Channel) -> None:
    remote, out = start(channel, "cat", tty=(24, 80))
    remote.write(b"typed\n")
    remote.end_of_input()
    assert remote.wait(SECONDS) == 0
    assert out == b"typed\r\n" * 2
