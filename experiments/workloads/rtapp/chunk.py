# SPDX-License-Identifier: MIT
"""What goes over a connection: the number of the chunk that is wanted first, then chunks.

Numbers have 8 bytes. A chunk begins with its own; the rest is of the endless pattern.
"""

import struct

from experiments.workloads import pattern

SIZE = 3072
EVERY_S = 0.16
NUMBER = struct.Struct("!Q")
STREAM = 1


def chunk(seed: int, number: int) -> bytes:
    body = SIZE - NUMBER.size
    start = pattern.start_of(seed, STREAM)
    return NUMBER.pack(number) + pattern.piece(start, number * body, body)


def number_of(seed: int, data: bytes) -> int:
    """Raises WrongByte where a byte of it is wrong."""
    (number,) = NUMBER.unpack_from(data)
    body = SIZE - NUMBER.size
    pattern.check(pattern.start_of(seed, STREAM), number * body, data[NUMBER.size :])
    return number
