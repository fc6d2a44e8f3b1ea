# SPDX-License-Identifier: MIT
"""The reassembly: bytes of an object come in any order and leave in theirs."""


class Overlap(ValueError):
    """Bytes that are there already."""


class Buffer:
    """Holds what came before its turn. `front`: all before this byte has left."""

    def __init__(self) -> None:
        self.front = 0
        self.held = 0
        self.peak = 0
        self._pieces: dict[int, bytes] = {}

    def put(self, start: int, data: bytes) -> list[bytes]:
        """What may leave now, in order. Pieces may be of any size, but no byte comes twice."""
        if start < self.front or start in self._pieces:
            raise Overlap(f"byte {start} came twice")
        if start > self.front:
            self._pieces[start] = data
            self.held += len(data)
            self.peak = max(self.peak, self.held)
            return []
        ready = [data]
        self.front += len(data)
        while (piece := self._pieces.pop(self.front, None)) is not None:
            ready.append(piece)
            self.front += len(piece)
            self.held -= len(piece)
        return ready
