# SPDX-License-Identifier: MIT
"""An object by ranges: a connection to each source in use, fed by what the transfer decides."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from experiments.workloads.mhttp.asking import Asking
from experiments.workloads.mhttp.connection import LOST, Connection
from experiments.workloads.mhttp.failure import WrongAnswer
from experiments.workloads.mhttp.message import Answer, Identity, check
from experiments.workloads.mhttp.meter import TICK_S
from experiments.workloads.mhttp.plan import Range
from experiments.workloads.mhttp.transfer import Transfer

Write = Callable[[list[bytes]], Awaitable[None]]


@dataclass
class Lane:
    """A connection that the transfer knows by a number; `woken` when it may have been asked."""

    number: int
    connection: Connection
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    chunks: int = 0  # that came whole over it


@dataclass
class Ranges:
    """`most`: connections at a time. `write` gets the object's bytes in their order."""

    asking: Asking
    transfer: Transfer
    identity: Identity
    most: int
    write: Write
    _lanes: dict[int, Lane] = field(default_factory=dict)
    _opening: set[asyncio.Task[Any]] = field(default_factory=set)  # a handshake is awaited
    _running: int = 0
    _order: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, connection: Connection, answer: Answer) -> None:
        """From the first range's answer on. Raises Failed, and what `write` raises."""
        lane = self._join(0, connection)
        self._first = self.transfer.ask_first(0)
        self._alone = True  # until the first chunk is whole
        try:
            async with asyncio.TaskGroup() as self._tasks:
                self._ticking = self._tasks.create_task(self._tick())
                self._begin(0, lane, answer)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self.asking.account.peak_bytes = self.transfer.buffer.peak
        if not self.transfer.whole:
            raise self.asking.failed()

    def _begin(self, number: int, lane: Lane | None = None, answer: Answer | None = None) -> None:
        self._running += 1
        self._tasks.create_task(self._run_lane(number, lane, answer))

    async def _run_lane(self, number: int, lane: Lane | None, answer: Answer | None) -> None:
        """One source after the other, while there are any and the object is not whole."""
        try:
            while lane or (lane := await self._next_lane(number)):
                await self._use(lane, answer)
                lane = answer = None
        finally:
            self._running -= 1
            if not self._running:
                self._ticking.cancel()

    async def _next_lane(self, number: int) -> Lane | None:
        own = asyncio.current_task()
        assert own is not None
        while not self.transfer.whole and (source := self.asking.sources.take()) is not None:
            self._opening.add(own)
            try:
                return self._join(number, await self.asking.open(source))
            except LOST as error:
                self.asking.lost(source, None, error, good=False)
            finally:
                self._opening.remove(own)
        return None

    def _join(self, number: int, connection: Connection) -> Lane:
        self.transfer.join(number, connection.rtt_s())
        self._lanes[number] = Lane(number, connection)
        return self._lanes[number]

    async def _use(self, lane: Lane, answer: Answer | None) -> None:
        """To its end; what it owes then is asked of the others, or of its successor."""
        error: BaseException | None = None
        try:
            await self._serve(lane, answer)
        except LOST as why:
            error = why
        except BaseException:
            lane.connection.close()
            raise
        finally:
            self.transfer.lost(lane.number)
            del self._lanes[lane.number]
        if error is None:
            self.asking.done(lane.connection)
        else:
            good = lane.chunks > 0 and not isinstance(error, WrongAnswer)
            self.asking.lost(lane.connection.source, lane.connection, error, good=good)
        self._offer_all()

    async def _serve(self, lane: Lane, answer: Answer | None) -> None:
        """Reads what was asked for until the object is whole or the connection is to be closed."""
        asked = self.transfer.lanes[lane.number].asked
        while not self.transfer.whole:
            self._offer(lane)
            if not asked:
                lane.woken.clear()
                await lane.woken.wait()
                continue
            part = asked[0]
            answer = answer or await lane.connection.head()
            check(answer, part, self.identity)
            await self._take(lane, answer, part)
            lane.chunks += 1
            if not answer.kept_alive:
                return
            answer = None
            self._offer_all()

    async def _take(self, lane: Lane, answer: Answer, part: Range) -> None:
        left, leg = part.size, self.asking.leg(lane.connection.source)
        async for data in lane.connection.body(answer):
            if len(data) > left:
                raise WrongAnswer(f"more than the {part.size} bytes of {part.field()}")
            left -= len(data)
            leg.bytes += len(data)
            ready = self.transfer.came(lane.number, data)
            if ready:
                async with self._order:  # they queue here in the order of their bytes
                    await self.write(ready)
            self._offer(lane)
            self._open_others()
        if left:
            raise WrongAnswer(f"{left} bytes short of the {part.size} of {part.field()}")

    def _open_others(self) -> None:
        """Once, when the first chunk is whole and there is more to ask for."""
        if self._alone and self.transfer.buffer.front >= self._first.end:
            self._alone = False
            if self.transfer.plan.waiting:
                for number in range(1, self.most):
                    self._begin(number)

    def _offer(self, lane: Lane) -> None:
        """Asks for what the transfer decides, if it is time for that."""
        self.transfer.lanes[lane.number].rtt_s = lane.connection.rtt_s()
        while (part := self.transfer.ask(lane.number)) is not None:
            self.asking.ask(lane.connection, part)
            lane.woken.set()

    def _offer_all(self) -> None:
        for lane in self._lanes.values():
            self._offer(lane)
            if self.transfer.whole:
                lane.woken.set()
        if self.transfer.whole:
            for it in self._opening:
                it.cancel()  # nobody needs that connection, and the clock would wait for it

    async def _tick(self) -> None:
        """Who was given nothing asks again: by other estimates it may be given something."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += TICK_S
            await asyncio.sleep(due - loop.time())
            self.transfer.tick()
            self._offer_all()
