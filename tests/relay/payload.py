# SPDX-License-Identifier: MIT
"""Bytes to send: seeded, so that a failure can be had again, and hashed, so that none is lost."""

import hashlib
import random
from pathlib import Path

# Prime, so that no block of a message, a page or a segment repeats at the same place.
PATTERN_BYTES = 1_048_573


def seeded(size: int, seed: int = 1) -> bytes:
    """Past PATTERN_BYTES these over and over: each worker makes what modules have at hand."""
    pattern = random.Random(seed).randbytes(min(size, PATTERN_BYTES))
    return (pattern * -(-size // PATTERN_BYTES))[:size]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write(path: Path, size: int, seed: int = 1) -> str:
    """A file of `size` seeded bytes; its SHA-256."""
    pattern = seeded(min(size, PATTERN_BYTES), seed)
    sha = hashlib.sha256()
    with path.open("wb") as out:
        left = size
        while left:
            block = pattern[:left]
            out.write(block)
            sha.update(block)
            left -= len(block)
    return sha.hexdigest()


def file_digest(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
