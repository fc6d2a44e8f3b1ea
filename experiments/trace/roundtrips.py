# SPDX-License-Identifier: MIT
"""The round trips of one flow, as its client's capture shows them.

A sample runs from a packet with data to the first acknowledgement of its last byte. By Karn's rule
nothing that was sent again gives a sample, since no one knows which of the two was acknowledged.
What was on its way behind it gives none either: its acknowledgement waited for the repair.
"""

from collections import deque

WORD, HALF = 0xFFFFFFFF, 0x80000000
WAITING = 16384  # packets: what acknowledgements that were not captured leave behind is forgotten


class RoundTrips:
    __slots__ = ("_high", "_syn_at", "_waiting", "again", "by_slot", "count", "handshake_ns")
    __slots__ += ("least_ns", "total_ns")

    def __init__(self) -> None:
        self.again = 0  # packets with data that was sent before
        self.count = 0
        self.total_ns = 0
        self.least_ns: int | None = None
        self.handshake_ns: int | None = None  # from SYN to SYN-ACK, if there was one SYN
        self.by_slot: dict[int, list[int]] = {}  # of the data's slot: samples, their sum
        self._high: int | None = None  # the first byte that was not sent yet
        self._syn_at: int | None = None
        self._waiting: deque[tuple[int, int, int]] = deque(maxlen=WAITING)

    def opened(self, time_ns: int, *, again: bool) -> None:
        """The client's SYN."""
        self._syn_at = None if again else time_ns

    def answered(self, time_ns: int) -> None:
        """The server's SYN-ACK."""
        if self._syn_at is not None:
            self.handshake_ns = time_ns - self._syn_at
            self._syn_at = None

    def sent(self, time_ns: int, slot: int, seq: int, payload: int) -> None:
        """Data of the client."""
        end = (seq + payload) & WORD
        if self._high is None or (seq - self._high) & WORD < HALF:
            self._high = end
            self._waiting.append((end, time_ns, slot))
            return
        self.again += 1
        waiting = self._waiting
        while waiting and (waiting[-1][0] - seq - 1) & WORD < HALF:
            waiting.pop()
        if (end - self._high) & WORD < HALF:
            self._high = end

    def acknowledged(self, time_ns: int, ack: int) -> None:
        waiting = self._waiting
        while waiting and (ack - waiting[0][0]) & WORD < HALF:
            _, sent_at, slot = waiting.popleft()
            self._sample(time_ns - sent_at, slot)

    def _sample(self, took_ns: int, slot: int) -> None:
        self.count += 1
        self.total_ns += took_ns
        if self.least_ns is None or took_ns < self.least_ns:
            self.least_ns = took_ns
        found = self.by_slot.get(slot)
        if found is None:
            self.by_slot[slot] = [1, took_ns]
        else:
            found[0] += 1
            found[1] += took_ns
