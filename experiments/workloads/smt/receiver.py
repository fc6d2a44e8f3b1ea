# SPDX-License-Identifier: MIT
"""The receiver: a buffer for each application, and what the sender is told of it.

An application's buffer has what came for it and was not taken: what waits for dependencies, and
what could be taken. At 75 % of it the sender is told to STOP, at 25 % to RESTART. What finds it
full is dropped, unless the application waits for it: otherwise a buffer full of messages that wait
for this one would never empty.
"""

from collections import deque
from dataclasses import dataclass, field

from experiments.workloads.smt.control import Ack, Control, Drop, Restart, Stop
from experiments.workloads.smt.header import Header
from experiments.workloads.smt.order import Message, Order

ACK_S = 0.020
STOP_AT = 0.75
RESTART_AT = 0.25


@dataclass
class Application:
    """`waits`: it asked for a message when there was none."""

    held: int = 0
    ready: deque[Message] = field(default_factory=deque)
    waits: bool = False
    stopped: bool = False


@dataclass
class Counts:
    came: int = 0
    duplicates: int = 0
    dropped: int = 0
    stops: int = 0
    most_held: int = 0


class Receiver:
    """`most`: messages in each application's buffer. `woken`: the tags of applications that waited
    and have something to take now. `due`: what is to be told to the sender, in order."""

    def __init__(self, most: int) -> None:
        self.order = Order()
        self.counts = Counts()
        self.woken: set[int] = set()
        self.due: list[Control] = []
        self._most = most
        self._applications: dict[int, Application] = {}
        self._dropped: set[tuple[int, int]] = set()
        self._acked: Ack | None = Ack(0, 0)

    def came(self, message: Message) -> bool:
        """Whether it was kept. Raises BadMessage."""
        header = message.header
        self.counts.came += 1
        if not self.order.is_new(header):
            self.counts.duplicates += 1
            self._acked = None  # the sender does not know yet
            return False
        application = self._of(header.tag)
        if not self._has_room(application, header):
            self.counts.dropped += 1
            self._dropped.add((header.round, header.number))
            self.due.append(Drop(header.round, header.number))
            return False
        self._dropped.discard((header.round, header.number))
        application.held += 1
        self.counts.most_held = max(self.counts.most_held, application.held)
        self._release(self.order.came(message))
        if not application.stopped and application.held >= STOP_AT * self._most:
            application.stopped = True
            self.counts.stops += 1
            self.due.append(Stop(header.tag))
        return True

    def take(self, tag: int) -> Message | None:
        """The application asks for its next message, which counts as delivered then."""
        application = self._of(tag)
        application.waits = not application.ready
        if application.waits:
            return None
        message = application.ready.popleft()
        application.held -= 1
        self._release(self.order.deliver(message))
        if application.stopped and application.held <= RESTART_AT * self._most:
            application.stopped = False
            self.due.append(Restart(tag))
        return message

    def ack(self) -> Ack | None:
        """What is to be acknowledged now, if that is new to the sender."""
        found = self.acknowledgement()
        if found == self._acked:
            return None
        self._acked = found
        return found

    def acknowledgement(self) -> Ack:
        return Ack(self.order.round, self.order.delivered.smallest)

    def repeat(self) -> None:
        """A connection was lost, and with it perhaps what the sender was told."""
        self._acked = None
        for tag, application in self._applications.items():
            self.due.append(Stop(tag) if application.stopped else Restart(tag))
        self.due += [Drop(*it) for it in sorted(self._dropped)]

    def _of(self, tag: int) -> Application:
        return self._applications.setdefault(tag, Application())

    def _has_room(self, application: Application, header: Header) -> bool:
        if application.held < self._most:
            return True
        return application.waits and self.order.is_ready(header)

    def _release(self, messages: list[Message]) -> None:
        for it in messages:
            application = self._of(it.header.tag)
            application.ready.append(it)
            if application.waits:
                application.waits = False
                self.woken.add(it.header.tag)
