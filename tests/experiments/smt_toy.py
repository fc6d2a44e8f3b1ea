# SPDX-License-Identifier: MIT
"""A sender and a receiver of SMT with toy lines between them, a step at a time."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.workloads.smt.control import Ack, Control, Drop, Restart, Stop, decode, encode
from experiments.workloads.smt.header import SIZE
from experiments.workloads.smt.header import decode as decode_header
from experiments.workloads.smt.numbering import Numbering
from experiments.workloads.smt.order import Message
from experiments.workloads.smt.priorities import Class
from experiments.workloads.smt.receiver import Receiver
from experiments.workloads.smt.sender import Limits, Sender

CLASSES = (Class("low"), Class("much", weight=3), Class("high", priority=1))


def sender(
    limits: Limits | None = None, numbering: Numbering | None = None, ordered: bool = False
) -> Sender:
    return Sender(CLASSES, limits or Limits(), 1 << 15, ordered, numbering)


@dataclass
class Toy:
    """What is on each line goes in its order; lines overtake each other."""

    sender: Sender
    receiver: Receiver
    lines: list[deque[bytes]]
    back: deque[Control] = field(default_factory=deque)
    delivered: list[int] = field(default_factory=list)
    lost: Counter[int] = field(default_factory=Counter)

    def leave(self, chosen: Sequence[int]) -> None:
        """All that may; by these lines in turn."""
        turn = 0
        while (leaving := self.sender.due()) is not None:
            for it in leaving.messages:
                line = chosen[turn % len(chosen)]
                self.lines[line].append(self.sender.leave(it, (line, self.lost[line])))
                turn += 1

    def arrive(self, line: int) -> None:
        if self.lines[line]:
            data = self.lines[line].popleft()
            self.receiver.came(Message(decode_header(data), data[SIZE:]))
            self.flush()

    def take(self, tag: int) -> bool:
        message = self.receiver.take(tag)
        if message is not None:
            self.delivered.append(int.from_bytes(message.payload[:2], "big"))
        self.flush()
        return message is not None

    def lose(self, line: int) -> None:
        """A connection, with all that is on it either way; another one takes its place."""
        self.lines[line].clear()
        self.back.clear()
        self.sender.lost((line, self.lost[line]))
        self.lost[line] += 1
        self.receiver.repeat()
        self.flush()

    def flush(self) -> None:
        self.back += self.receiver.due
        self.receiver.due.clear()

    def tick(self) -> None:
        ack = self.receiver.ack()
        if ack is not None:
            self.back.append(ack)
        self.sender.tick()

    def tell(self) -> None:
        if not self.back:
            return
        it = decode(encode(self.back.popleft()))
        if isinstance(it, Ack):
            self.sender.acked(it)
        elif isinstance(it, Stop):
            self.sender.stopped(it.tag)
        elif isinstance(it, Restart):
            self.sender.restarted(it.tag)
        elif isinstance(it, Drop):
            self.sender.dropped(it.round, it.number)
