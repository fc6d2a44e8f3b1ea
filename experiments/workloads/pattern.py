# SPDX-License-Identifier: MIT
"""The bytes of every transfer: the same at both ends, so that each is compared as it arrives.

A stream is the one endless pattern from a start of its own on; bytes of another connection, or of
another place of the same one, are wrong bytes.
"""

import random

# Prime, so that no block of a message, a page or a segment repeats at the same place.
PERIOD = 1_048_573
CHUNK = 1 << 18
_BLOCK = random.Random("tm3").randbytes(PERIOD)
_UNROLLED = _BLOCK + _BLOCK[:CHUNK]


class WrongByte(RuntimeError):
    """What arrived is not what was sent."""


def start_of(seed: int, stream: int) -> int:
    """Where in the pattern the stream of that number begins."""
    return (seed * 15_485_863 + stream * 32_452_843 + 17) % PERIOD


def view(start: int, position: int, size: int) -> memoryview:
    """At most CHUNK bytes of a stream, from `position` on. Nothing is copied: who has to wait
    with them, as thousands may, has no memory of its own for them."""
    at = (start + position) % PERIOD
    return memoryview(_UNROLLED)[at : at + min(size, CHUNK)]


def piece(start: int, position: int, size: int) -> bytes:
    """The same as bytes."""
    return bytes(view(start, position, size))


def check(start: int, position: int, data: bytes) -> None:
    """Raises WrongByte that names the first one."""
    done = 0
    while done < len(data):
        wanted = piece(start, position + done, len(data) - done)
        found = data[done : done + len(wanted)]
        if found != wanted:
            at = next(
                n for n, pair in enumerate(zip(found, wanted, strict=True)) if len({*pair}) > 1
            )
            raise WrongByte(
                f"byte {position + done + at} is 0x{found[at]:02x}, not 0x{wanted[at]:02x}"
            )
        done += len(wanted)
