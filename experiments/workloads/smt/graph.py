# SPDX-License-Identifier: MIT
"""The ordering graph: which messages are to be delivered before which."""

from collections.abc import Callable, Iterable

from experiments.workloads.smt.failure import BadInput


class Graph:
    """Messages are counted from 0 in the order in which they are added, so a dependency is always
    the smaller one. Of each message the graph keeps the dependencies that no other one implies:
    its transitive reduction."""

    def __init__(self) -> None:
        self._needs: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return len(self._needs)

    def needs(self, message: int) -> tuple[int, ...]:
        """Its dependencies after the reduction, ascending."""
        return self._needs[message]

    def add(self, dependencies: Iterable[int]) -> int:
        """The new message. Raises BadInput for a dependency that was not added before."""
        message = len(self._needs)
        wanted = sorted(set(dependencies))
        for it in wanted:
            if not 0 <= it < message:
                raise BadInput(f"forward dependency: message {message} depends on message {it}")
        implied = self._behind(wanted) if len(wanted) > 1 else set()
        self._needs.append(tuple(it for it in wanted if it not in implied))
        return message

    def _behind(self, wanted: list[int]) -> set[int]:
        """What these depend on, down to the smallest of them."""
        found: set[int] = set()
        left = list(wanted)
        while left:
            for it in self._needs[left.pop()]:
                if it >= wanted[0] and it not in found:
                    found.add(it)
                    left.append(it)
        return found

    def closure(self, message: int, without: Callable[[int], bool] = lambda _: False) -> list[int]:
        """The message and all that it depends on, directly or not, ascending. `without`: messages
        that are left out together with what is behind them alone."""
        found, left = {message}, [message]
        while left:
            for it in self._needs[left.pop()]:
                if it not in found and not without(it):
                    found.add(it)
                    left.append(it)
        return sorted(found)
