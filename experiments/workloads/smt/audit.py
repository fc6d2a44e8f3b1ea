# SPDX-License-Identifier: MIT
"""Whether the receiver kept messages back or delivered them too soon: computed afterwards, of
applications that take each message at once.

Time is counted in messages that came. A message could be delivered from the last of these times on:
it came, each of its dependencies was delivered, all of the round before was, and a reset message
told where that ended.
"""

from experiments.workloads.smt.header import ROUNDS, Header


class Audit:
    def __init__(self) -> None:
        self._now = 0
        self._round = 0  # the last one that something was delivered of, not modulo 2^16
        self._came: dict[tuple[int, int], tuple[int, Header]] = {}
        self._delivered: dict[tuple[int, int], int] = {}

    def came(self, header: Header) -> None:
        self._now += 1
        self._came.setdefault((self._unrolled(header), header.number), (self._now, header))

    def delivered(self, header: Header) -> None:
        self._round = self._unrolled(header)
        self._delivered[self._round, header.number] = self._now

    def _unrolled(self, header: Header) -> int:
        ahead = (header.round - self._round + ROUNDS // 2) % ROUNDS - ROUNDS // 2
        return self._round + ahead

    def late(self) -> int:
        """Messages that were delivered at another time than the first possible one, or not at all
        though they could be."""
        begins = self._begins()
        wrong = 0
        for (round_, number), (at, header) in self._came.items():
            needs = [self._delivered.get((round_, it)) for it in header.needs]
            times = [at, begins.get(round_), *needs]
            first = None if None in times else max(it for it in times if it is not None)
            wrong += self._delivered.get((round_, number)) != first
        return wrong

    def _begins(self) -> dict[int, int]:
        """When each round could begin, if it could."""
        told: dict[int, tuple[int, int]] = {}
        for (round_, _), (at, header) in self._came.items():
            if header.termination is not None:
                first, _ = told.get(round_, (at, 0))
                told[round_] = (min(first, at), header.termination)
        begins = {0: 0}
        for round_ in sorted(told):
            at, last = told[round_]
            whole = [self._delivered.get((round_ - 1, it)) for it in range(last + 1)]
            if round_ - 1 in begins and None not in whole:
                begins[round_] = max(at, *(it for it in whole if it is not None))
        return begins
