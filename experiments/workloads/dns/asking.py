# SPDX-License-Identifier: MIT
"""The queries of one run while they are under way: when each was asked, tried and answered."""

import asyncio
import time
from typing import Any

from experiments.workloads.dns import questions
from experiments.workloads.dns.failure import WrongAnswer


class Asking:
    """`sent`: the query of each datagram or message, in the order in which they were sent."""

    def __init__(self, count: int) -> None:
        self.asked = [0.0] * count
        self.took: list[float | None] = [None] * count
        self.tries = [0] * count
        self.sent: list[int] = []
        self.late = 0  # answers to a query that had one already, or was given up
        self._answers: dict[int, asyncio.Future[None]] = {}

    def begin(self, number: int) -> "asyncio.Future[None]":
        """Done when its answer comes."""
        self.asked[number] = time.monotonic()
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        return answer

    def sends(self, number: int) -> None:
        self.tries[number] += 1
        self.sent.append(number)

    def came(self, wire: bytes) -> None:
        """Raises WrongAnswer."""
        at = time.monotonic()
        number = questions.answered(wire)
        answer = self._answers.get(number)
        if answer is None:
            raise WrongAnswer(f"an answer with id {number}, which was not asked")
        if answer.done():
            self.late += 1
            return
        self.took[number] = at - self.asked[number]
        answer.set_result(None)

    def left(self) -> int:
        return sum(not it.done() for it in self._answers.values())

    def found(self) -> dict[str, Any]:
        """Times are seconds; None is a query that was given up."""
        return {"took_s": self.took, "tries": self.tries, "sent": self.sent, "late": self.late}
