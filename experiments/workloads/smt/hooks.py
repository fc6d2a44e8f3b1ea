# SPDX-License-Identifier: MIT
"""The blocking manager: a message that must wait hangs on one of its unmet dependencies."""


class Hooks:
    """One hook a message. `woken` counts messages whose dependencies were looked at again."""

    def __init__(self) -> None:
        self.woken = 0
        self._waiting: dict[int, list[int]] = {}

    def hang(self, message: int, on: int) -> None:
        self._waiting.setdefault(on, []).append(message)

    def wake(self, delivered: int) -> list[int]:
        """Those that hung on it, ascending; they hang no longer."""
        found = sorted(self._waiting.pop(delivered, ()))
        self.woken += len(found)
        return found

    def __len__(self) -> int:
        return sum(len(it) for it in self._waiting.values())
