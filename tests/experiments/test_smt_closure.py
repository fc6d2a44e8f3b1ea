# SPDX-License-Identifier: MIT
"""By `closure` a message goes over one connection with all that it depends on."""

import asyncio

import pytest

from experiments.workloads.smt import control
from experiments.workloads.smt.association import Association
from experiments.workloads.smt.header import CONTROL, SIZE, decode
from experiments.workloads.smt.priorities import Class
from experiments.workloads.smt.settings import Settings
from tests.experiments.test_smt_client import Overtaken

CLASSES = (Class("low"), Class("high", priority=1))
CHAIN = [number.to_bytes(8, "big") * 1000 for number in range(10)]


def leaves(policy: str) -> list[list[bytes]]:
    """What goes over each of two lines that are alike, of a chain of which the last message alone
    is urgent; all of it waited for one message to be acknowledged."""

    async def work() -> list[list[bytes]]:
        settings = Settings(policy=policy, most_messages=1)
        it = Association(settings, CLASSES, lambda tag: None, lambda why: None)
        lines = [Overtaken(), Overtaken()]
        for line in lines:
            it.join(line)
        it.submit(1, b"", of="high")
        needs: list[int] = []
        for payload in CHAIN[:-1]:
            needs = [it.submit(1, payload, needs, "low")]
        it.submit(1, CHAIN[-1], needs, "high")
        assert sum(len(line.sent) for line in lines) == 1, "no more than is allowed"
        first = lines[0] if lines[0].sent else lines[1]
        for line in lines:
            line.sent.clear()
        it.came(first, control.encode(control.Ack(0, 1)))
        it.close()
        return [
            [data[SIZE:] for data in line.sent if decode(data).tag != CONTROL] for line in lines
        ]

    return asyncio.run(work())


def test_a_closure_goes_over_one_connection() -> None:
    """Whole, though it is more than may be unacknowledged."""
    assert sorted(leaves("closure"), key=len) == [[], CHAIN]


@pytest.mark.parametrize("policy", ["even", "least", "estimate"])
def test_by_other_policies_each_message_has_its_own(policy: str) -> None:
    found = leaves(policy)
    assert all(3 <= len(it) <= 7 for it in found), "lines that are alike share it"
    assert sorted(found[0] + found[1]) == CHAIN


def test_a_total_order_has_one_connection_alone() -> None:
    assert leaves("total") == [CHAIN, []]
