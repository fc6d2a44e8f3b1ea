# SPDX-License-Identifier: MIT
"""Control messages: a header with the tag 0, a byte that tells which one it is, its fields.

The thesis has ACK, STOP, RESTART and DROP, without their bytes. HELLO is ours: it is the first
message on each connection and tells which association it belongs to, and how the server is to send.
"""

import json
from dataclasses import dataclass
from typing import Any

from experiments.workloads.smt.failure import BadMessage
from experiments.workloads.smt.header import CONTROL, SIZE, Header

NAME_BYTES = 8
_FRONT = Header(CONTROL, 0, 0).encode()


@dataclass(frozen=True)
class Ack:
    """All rounds before this one are delivered, and of this one all numbers below `smallest`."""

    round: int
    smallest: int


@dataclass(frozen=True)
class Stop:
    """The application's buffer fills up: nothing more for it."""

    tag: int


@dataclass(frozen=True)
class Restart:
    """The end of STOP."""

    tag: int


@dataclass(frozen=True)
class Drop:
    """This message found the buffer full; it is to be sent again."""

    round: int
    number: int


@dataclass(frozen=True)
class Hello:
    association: bytes
    settings: str  # JSON


Control = Ack | Stop | Restart | Drop | Hello


def encode(it: Control) -> bytes:
    return _FRONT + _body(it)


def _body(it: Control) -> bytes:
    if isinstance(it, Ack):
        return b"\1" + it.round.to_bytes(2, "big") + it.smallest.to_bytes(5, "big")
    if isinstance(it, Stop):
        return bytes((2, it.tag))
    if isinstance(it, Restart):
        return bytes((3, it.tag))
    if isinstance(it, Drop):
        return b"\4" + it.round.to_bytes(2, "big") + it.number.to_bytes(4, "big")
    return b"\5" + it.association + it.settings.encode()


def decode(message: bytes) -> Control:
    """Of a message whose header has the tag 0. Raises BadMessage."""
    body = message[SIZE:]
    kind, size = body[:1], len(body)
    if kind == b"\1" and size == 8:
        return Ack(int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:], "big"))
    if kind in (b"\2", b"\3") and size == 2 and 0 < body[1] < 128:
        return Stop(body[1]) if kind == b"\2" else Restart(body[1])
    if kind == b"\4" and size == 7:
        return Drop(int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:], "big"))
    if kind == b"\5" and size > NAME_BYTES:
        try:
            return Hello(body[1 : 1 + NAME_BYTES], body[1 + NAME_BYTES :].decode())
        except UnicodeDecodeError:
            pass
    raise BadMessage(f"no control message: {body[:16].hex(' ') or 'nothing'}")


def told(it: Hello) -> dict[str, Any]:
    """Its settings. Raises BadMessage."""
    try:
        found = json.loads(it.settings)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadMessage(f"settings {it.settings[:40]!r} are no JSON object")
    return found
