# SPDX-License-Identifier: MIT
"""Memory that is not there: what cannot be held ends with a word, never in silence."""

from contextlib import suppress
from pathlib import Path

from tests.relay import wire
from tests.relay.ends import echo, serving
from tests.relay.netns import Namespace
from tests.relay.programs import Program
from tests.relay.proxies import remote_proxy
from tests.relay.wire import raw_lp

SPARE = 4 << 20


def short_of_memory(ns: Namespace, rp: Program) -> None:
    """From now on it gets no more than a little."""
    status = Path(f"/proc/{rp.pid}/status").read_text()
    (size,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmSize")]
    ns.run("prlimit", "--pid", str(rp.pid), f"--as={(int(size) << 10) + SPARE}")


def test_a_syn_without_memory_ends_the_session(
    two: tuple[Namespace, Namespace], tmp_path: Path
) -> None:
    """Dropped, it would leave an application without an answer for ever. Others get a new try."""
    near, _ = two
    near.ip("neigh", "add", "10.77.0.9", "lladdr", "02:00:00:00:00:09", "dev", "wire-l")
    with (
        serving(near, echo) as server,
        remote_proxy(near, tmp_path, "--max-conns", "60000", pipes=1, asan=False) as rp,
    ):
        short_of_memory(near, rp)
        with raw_lp(near, 1) as (pipe,):
            with suppress(OSError):
                for conn in range(1, 60000):
                    pipe.send(wire.syn(conn, "10.77.0.9", 80))
            rp.expect(r"session 1 of \S+ ended: there is no memory for connection \d+")
            assert pipe.ended(5)
        with raw_lp(near, 1) as (pipe,):
            pipe.send(wire.syn(1, "127.0.0.1", server.port), wire.data(1, 1, b"again"))
            message = pipe.receive()
            assert message is not None and message.body == b"again"
