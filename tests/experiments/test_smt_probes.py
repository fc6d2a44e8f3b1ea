# SPDX-License-Identifier: MIT
"""A connection that is used by nothing else is used now and then, so that its round trip is new."""

import asyncio
import time

from experiments.workloads.smt import control
from experiments.workloads.smt.estimate import Reading
from experiments.workloads.smt.header import SIZE, Header
from experiments.workloads.smt.server import Server, answer
from experiments.workloads.smt.settings import Settings
from tests.experiments.test_smt_client import Overtaken


class Distant(Overtaken):
    """As far as `rtt_s` says, and written down."""

    def __init__(self, rtt_s: float) -> None:
        super().__init__()
        self.rtt_s = rtt_s

    def reading(self) -> Reading:
        return Reading(self.rtt_s, 1e6, 0.0, 1000, 0, room=10**6)


def test_a_path_that_seemed_far_is_asked_again() -> None:
    """While there are acknowledgements they go by an idle connection, too; then none does."""

    async def work() -> None:
        server, near, far = Server(0.0), Distant(0.01), Distant(9.0)
        for line in (near, far):
            server.ends.came(line, control.encode(Settings().hello(b"12345678")))
        began = time.monotonic()
        for number in range(20):
            payload = number.to_bytes(8, "big")
            server.ends.came(near, Header(1, 0, number).encode() + payload)
            await asyncio.sleep(0.01)
        probes = len(far.sent)
        most = 2 + (time.monotonic() - began) / 0.05
        assert 2 <= probes <= most, "every 50 ms of 200, or of what a busy machine made of them"
        assert all(isinstance(control.decode(it), control.Ack) for it in far.sent)
        await asyncio.sleep(0.2)
        assert len(far.sent) <= probes + 1
        near.rtt_s, far.rtt_s = 9.0, 0.01
        for number in range(20, 60):
            server.ends.came(near, Header(1, 0, number).encode() + number.to_bytes(8, "big"))
            await asyncio.sleep(0.01)
        server.close()
        answers = [it for it in far.sent if it[SIZE:] == answer((59).to_bytes(8, "big"))]
        assert answers, "by now it is the near one"

    asyncio.run(work())
