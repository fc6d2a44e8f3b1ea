# SPDX-License-Identifier: MIT
"""A file of lines that somebody may still be writing: what is new in it since the last look."""

import os
from pathlib import Path
from typing import BinaryIO

PIECE = 256 * 1024  # of a file at a time: a long record does not come in one piece


class Tail:
    """Reads whole lines from `offset` on. A file that was removed is read to its end all the same;
    one that was made anew is told apart by `replaced`."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path, self.offset = path, offset
        self._file: BinaryIO | None = None
        self._rest = b""

    def new(self) -> list[str]:
        """Some of what is new; nothing where there is nothing yet. Raises PermissionError."""
        if self._file is None:
            try:
                self._file = self.path.open("rb")
            except FileNotFoundError:
                return []
            if os.fstat(self._file.fileno()).st_size < self.offset:
                self.offset = 0
            self._file.seek(self.offset)
        whole, end, self._rest = (self._rest + self._file.read(PIECE)).rpartition(b"\n")
        self.offset += len(whole) + len(end)
        return whole.decode(errors="replace").split("\n") if whole else []

    def replaced(self) -> bool:
        """Another file has this name, or this one begins anew: what was read of it is no more."""
        if self._file is None:
            return False
        ours = os.fstat(self._file.fileno())
        try:
            there = self.path.stat()
        except OSError:
            return False
        return (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino) or (
            there.st_size < self.offset
        )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
