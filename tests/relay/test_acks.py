# SPDX-License-Identifier: MIT
"""What rp says that it has parsed: what a sender keeps until then is bounded by it."""

import signal
import struct
from itertools import pairwise
from pathlib import Path

from tests.relay import wire, wire_ext
from tests.relay.ends import read_to_end, serving
from tests.relay.netns import Namespace
from tests.relay.proxies import remote_proxy
from tests.relay.waiting import equals
from tests.relay.wire import Pipe

CONNECTIONS, MESSAGES = 24, 60  # of 4 KiB: 240 KiB in each, within a first window
MIB = 1 << 20
READ = 248 << 10  # the most that is read from a pipe at once
ROOM = 64 << 20  # of rp's receive buffer
ACK, SYNACK = 9, 3
_ACK = struct.Struct("<BQIBBIQ")


def of_extension(pipe: Pipe) -> bytes:
    """The body of the next message, one of the extension's."""
    message = pipe.receive()
    assert message is not None and message.conn == 0, message
    return message.body


def parsed(ack: bytes) -> int:
    """The count in an ACK about pipe 0."""
    kind, _, _, pipes, index, incarnation, count = _ACK.unpack(ack)
    assert (kind, pipes, index, incarnation) == (ACK, 1, 0, 0)
    return int(count)


def test_an_ack_for_each_mebibyte(box: Namespace, tmp_path: Path) -> None:
    """Six lie ready when rp begins to read, and it reads them in less than the 100 ms after which
    it would tell of anything."""
    box.run("sysctl", "-qw", f"net.ipv4.tcp_rmem=4096 {ROOM} {ROOM}")
    body = b"m" * wire.PAYLOAD_MAX
    ids = range(1, CONNECTIONS + 1)
    with (
        serving(box, lambda sock: read_to_end(sock, 60.0)) as server,
        remote_proxy(box, tmp_path, "--extended", "127.0.0.1", asan=False) as rp,
        box.connect(("127.0.0.1", wire_ext.PORT)) as sock,
    ):
        pipe = Pipe(sock)
        pipe.send(wire_ext.Hello(b"a session's name", 0, 1).to_bytes())
        assert wire_ext.status_of(pipe.receive()) == wire_ext.NEW
        pipe.send(*(wire_ext.open_(conn, "127.0.0.1", server.port) for conn in ids))
        opened = 0
        while opened < CONNECTIONS:
            opened += of_extension(pipe)[0] == SYNACK
        rp.send_signal(signal.SIGSTOP)
        for conn in ids:
            pipe.send(*(wire.data(conn, 1 + n, body) for n in range(MESSAGES)))
        equals("what is not in rp's kernel", pipe.unsent, 0)
        rp.send_signal(signal.SIGCONT)
        told = [CONNECTIONS]
        while told[-1] < CONNECTIONS * (1 + MESSAGES):
            said = of_extension(pipe)
            if said[0] == ACK:
                told.append(parsed(said))
    steps = [len(body) * (b - a) for a, b in pairwise(told)]
    assert max(steps) <= MIB + READ, steps
