# SPDX-License-Identifier: MIT
"""What the guest has and the machine that runs it may lack: SCTP, netem, Open vSwitch."""

import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") != "1", reason="of the guest's kernel: make test-vm"
)


def command(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def test_netem_is_there() -> None:
    from topologies.qdisc import why_no_netem

    assert why_no_netem() is None


def test_sctp_carries_bytes() -> None:
    """A stream socket, as a pipe would use it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP) as sender:
            sender.settimeout(10)
            sender.connect(listener.getsockname())
            receiver, _ = listener.accept()
            with receiver:
                receiver.settimeout(10)
                sender.sendall(b"pipe" * 256)
                got = b""
                while len(got) < 1024:
                    part = receiver.recv(4096)
                    assert part, f"the end after {len(got)} bytes"
                    got += part
    assert got == b"pipe" * 256


@pytest.fixture
def switch() -> Iterator[None]:
    control = "/usr/share/openvswitch/scripts/ovs-ctl"
    command(control, "start", "--system-id=random")
    yield
    command(control, "stop")


def test_mininet_over_open_vswitch_and_netem(switch: None) -> None:
    from topologies.smoke import DELAY_MS, switched_rtt_ms

    assert switched_rtt_ms() >= 2 * DELAY_MS
