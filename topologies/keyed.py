# SPDX-License-Identifier: MIT
"""A key that rp and lp of a lab show each other, made for one pair and kept nowhere."""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_bytes


@contextmanager
def keyed(folder: Path) -> Iterator[tuple[str, ...]]:
    """The options of both. The file is there as long as the block, in which they read it."""
    path = folder / "lab.key"
    path.touch(0o600)
    try:
        path.write_text(f"lab {b64encode(token_bytes(32)).decode()}\n")
        yield ("--key-file", str(path))
    finally:
        path.unlink()
