# SPDX-License-Identifier: MIT
"""An association: a sender and a receiver over the lines between two programs."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from experiments.workloads.smt import control
from experiments.workloads.smt.audit import Audit
from experiments.workloads.smt.control import Ack, Control, Drop, Hello, Restart, Stop
from experiments.workloads.smt.estimate import QUERY_S, presume
from experiments.workloads.smt.failure import BadMessage
from experiments.workloads.smt.header import CONTROL, decode
from experiments.workloads.smt.header import SIZE as HEADER_BYTES
from experiments.workloads.smt.line import Line
from experiments.workloads.smt.order import Message
from experiments.workloads.smt.policies import Selector, soonest
from experiments.workloads.smt.priorities import Class
from experiments.workloads.smt.receiver import ACK_S, Receiver
from experiments.workloads.smt.sender import Sender
from experiments.workloads.smt.settings import Settings

KEEPS = 3  # times in the silence after which a line is lost
PROBE_S = 0.05  # a line that nothing left by for so long tells an old round trip


class Association:
    """`ready` is called with the tag of an application that asked when there was nothing for it and
    now has something; `bare` when no line is left. `moved` is set when messages may have left."""

    def __init__(
        self,
        settings: Settings,
        classes: Iterable[Class],
        ready: Callable[[int], None],
        bare: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.sender = Sender(
            classes, settings.limits, settings.bulk_bytes, ordered=settings.rule.ordered
        )
        self.receiver = Receiver(settings.buffer)
        self.audit = Audit()
        self.lines: list[Line] = []
        self.all_lines: list[Line] = []
        self.lost: list[str] = []
        self.moved = asyncio.Event()
        self._selector = Selector(settings.rule)
        self._ready, self._bare = ready, bare
        self._waking = False
        self._kept_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._ticking = self._loop.create_task(self._tick())
        self._ticking.add_done_callback(self._ticked)

    def join(self, line: Line) -> None:
        self.lines.append(line)
        self.all_lines.append(line)
        self._pump()

    def close(self) -> None:
        """Each line ends with an acknowledgement, so that the peer sends nothing again."""
        self._ticking.cancel()
        ack = control.encode(self.receiver.acknowledgement())
        for line in self.lines:
            line.send(ack)
            line.close()
        self.lines = []

    def submit(self, tag: int, payload: bytes, needs: Iterable[int] = (), of: str = "any") -> int:
        """Raises BadInput."""
        message = self.sender.submit(tag, payload, needs, of)
        self._pump()
        return message

    def take(self, tag: int) -> Message | None:
        """An application's next message."""
        message = self.receiver.take(tag)
        if message is not None:
            self.audit.delivered(message.header)
        self._wake()
        return message

    def came(self, line: Line, data: bytes) -> None:
        """By a line of this association. Raises BadMessage."""
        header = decode(data)
        if header.tag == CONTROL:
            self._told(control.decode(data))
            self._pump()
            return
        if self.receiver.came(Message(header, data[HEADER_BYTES:])):
            self.audit.came(header)
        self._wake()

    def gone(self, line: Line, why: str) -> None:
        """What left by it and was not acknowledged leaves by another one."""
        if line not in self.lines:
            return
        self.lines.remove(line)
        self.lost.append(f"{line.name}: {why}")
        if not self.lines:
            self._bare("; ".join(self.lost))
            return
        self.sender.lost(line)
        self.receiver.repeat()
        self._pump()
        self._flush()

    def _told(self, it: Control) -> None:
        if isinstance(it, Ack):
            self.sender.acked(it)
        elif isinstance(it, Stop):
            self.sender.stopped(it.tag)
        elif isinstance(it, Restart):
            self.sender.restarted(it.tag)
        elif isinstance(it, Drop):
            self.sender.dropped(it.round, it.number)
        elif isinstance(it, Hello):
            raise BadMessage("a second HELLO")

    def _wake(self) -> None:
        """One application's messages may wake another one."""
        if self._waking:
            return
        self._waking = True
        try:
            while self.receiver.woken:
                self._ready(self.receiver.woken.pop())
        finally:
            self._waking = False
        self._flush()

    def _pump(self) -> None:
        """All that may leave leaves."""
        while self.lines and (leaving := self.sender.due()) is not None:
            now = self._read()
            if self.settings.rule.whole:
                line = self._selector.choose(self.lines, leaving.size, now, leaving.bulk)
                chosen = [line] * len(leaving.messages)
            else:
                chosen = []
            for at, it in enumerate(leaving.messages):
                if not self.settings.rule.whole:
                    chosen.append(self._selector.choose(self.lines, it.size, now, leaving.bulk))
                self._send(chosen[at], self.sender.leave(it, chosen[at]), now)
        self.moved.set()

    def _flush(self) -> None:
        """What the peer's sender is to be told."""
        while self.receiver.due and self.lines:
            self._tell(self.receiver.due.pop(0))

    def _tell(self, it: Control) -> None:
        data = control.encode(it)
        now = self._read()
        self._send(soonest(self.lines, len(data), now), data, now)

    def _probe(self, ack: Ack) -> None:
        """By each line that nothing left by lately, once more. A path that seemed far when it was
        last used would be chosen never again; and an ACK may come twice."""
        now = self._loop.time()
        for line in self.lines:
            if now - line.used_at >= PROBE_S:
                self._send(line, control.encode(ack), now)

    @staticmethod
    def _send(line: Line, data: bytes, now: float) -> None:
        line.estimate.sent(len(data))
        line.used_at = now
        line.send(data)

    def _read(self) -> float:
        """What each line tells of itself, where that is old. Now."""
        now = self._loop.time()
        old = [line for line in self.lines if now - line.estimate.read_at >= QUERY_S]
        for line in old:
            line.estimate.read(line.reading(), now)
        if old:
            presume(line.estimate for line in self.lines)
        return now

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(ACK_S)
            if not self.lines:
                continue
            ack = self.receiver.ack()
            if ack is not None:
                self._tell(ack)
                self._probe(ack)
            self.sender.tick()
            self._pump()
            now = self._loop.time()
            if now - self._kept_at >= self.settings.silence_s / KEEPS:
                self._kept_at = now
                for line in self.lines:
                    line.keep()

    def _ticked(self, ended: "asyncio.Task[None]") -> None:
        """It ends by an error alone, without which nobody would know why all stands still."""
        if not ended.cancelled() and (error := ended.exception()) is not None:
            self._bare(f"{type(error).__name__}: {error}")

    def told(self) -> dict[str, Any]:
        """For JSON."""
        sender, receiver = self.sender, self.receiver
        return {
            "sent": vars(sender.counts) | {"rounds": sender.numbering.round + 1},
            "received": vars(receiver.counts) | {"woken": receiver.order.hooks.woken},
            "late": self.audit.late(),
            "lines": [it.told() for it in self.all_lines],
            "lost": self.lost,
        }
