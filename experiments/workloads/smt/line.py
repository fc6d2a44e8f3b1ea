# SPDX-License-Identifier: MIT
"""A line: one connection of an association, by TCP or QUIC, that carries whole messages."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from experiments.workloads.smt.estimate import Estimate, Reading

LARGEST = 16 << 20  # bytes of a message with its header
LENGTH_BYTES = 4  # in front of each message where many share a stream


@dataclass(frozen=True)
class Ends:
    """What a line tells its association."""

    came: Callable[["Line", bytes], None]  # a message; may raise BadMessage
    lost: Callable[["Line", str], None]  # why; once


class Line(ABC):
    name = ""  # of the path
    estimate: Estimate
    used_at = 0.0  # when something last left by it

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0

    @property
    def in_order(self) -> bool:
        """Whether no message overtakes another one on it."""
        return True

    @abstractmethod
    def reading(self) -> Reading: ...

    @abstractmethod
    def send(self, message: bytes) -> None:
        """It is queued, however much is."""

    @abstractmethod
    def keep(self) -> None:
        """So that a line that nothing goes by is not taken for a lost one."""

    @abstractmethod
    def configure(self, silence_s: float, cc: str) -> None:
        """After how long without an answer it is lost, and TCP's congestion control. The server
        learns both from the client. Raises OSError where there is no such congestion control."""

    @abstractmethod
    def close(self) -> None:
        """Nothing is told of it any more."""

    def told(self) -> dict[str, Any]:
        return {"path": self.name, "messages": self.messages, "bytes": self.bytes}


class Frames:
    """Messages out of a stream, each behind its length."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def put(self, data: bytes) -> list[bytes]:
        """Those that are whole now. Raises ValueError for a length that no message has."""
        self._buffer += data
        found, at = [], 0
        while len(self._buffer) - at >= LENGTH_BYTES:
            size = int.from_bytes(self._buffer[at : at + LENGTH_BYTES], "big")
            if size > LARGEST:
                raise ValueError(f"a message of {size} bytes")
            begin = at + LENGTH_BYTES
            if len(self._buffer) < begin + size:
                break
            at = begin + size
            found.append(bytes(self._buffer[begin:at]))
        del self._buffer[:at]
        return found


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(LENGTH_BYTES, "big") + message
