# SPDX-License-Identifier: MIT
"""What a with statement begins and ends."""

from types import TracebackType
from typing import Self


class Scope:
    """`open` when the block begins, `close` when it ends, whatever ends it."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(error)

    def open(self) -> None:
        """Nothing, where all is made when it is first needed."""

    def close(self, error: BaseException | None) -> None:
        """`error` ended the block, and goes on."""
        raise NotImplementedError
