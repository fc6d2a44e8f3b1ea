# SPDX-License-Identifier: MIT
"""What a proxy has not read yet is not missing: pipes far apart do not cost a connection."""

import fcntl
import signal
import struct
import termios
from pathlib import Path

from tests.relay import wire
from tests.relay.ends import read_to_end, serving
from tests.relay.netns import Namespace
from tests.relay.proxies import remote_proxy
from tests.relay.waiting import equals
from tests.relay.wire import Pipe, raw_lp

HALF = 18_000  # messages: 70 MiB, more than a receiver holds out of order
ROOM = 160 << 20  # of a socket's receive buffer: bytes, and what it costs to keep them


def unsent(pipe: Pipe) -> int:
    """What of it is not yet in the other end's buffer."""
    told = fcntl.ioctl(pipe.sock, termios.TIOCOUTQ, struct.pack("i", 0))
    return int(struct.unpack("i", told)[0])


def test_a_pipe_that_is_ahead_stands_back(box: Namespace, tmp_path: Path) -> None:
    """All that one pipe holds comes before all that the other one holds, and both are full when rp
    begins to read. Read in turn, more would be out of order than rp may hold."""
    box.run("sysctl", "-qw", f"net.ipv4.tcp_rmem=4096 {ROOM} {ROOM}")
    with (
        serving(box, lambda sock: read_to_end(sock, 30.0)) as server,
        remote_proxy(box, tmp_path, pipes=2, asan=False) as rp,
        raw_lp(box, 2) as pipes,
    ):
        pipes[0].send(wire.syn(1, "127.0.0.1", server.port))
        rp.send_signal(signal.SIGSTOP)
        body = b"b" * 4096
        for n, pipe in enumerate(pipes):
            first = 1 + n * HALF
            for number in range(first, first + HALF, 100):
                pipe.send(*(wire.data(1, k, body) for k in range(number, number + 100)))
            equals(f"what pipe {n} has not brought to rp", lambda p=pipe: unsent(p), 0)
        rp.send_signal(signal.SIGCONT)
        pipes[0].send(wire.fin(1, 1 + 2 * HALF))
        ending = server.results.get(timeout=30)
        assert (ending.how, ending.size) == ("eof", 2 * HALF * len(body))
