# SPDX-License-Identifier: MIT
"""Messages that are generated: blocks of three kinds, one behind the other, and when they come.

stream    each message after the one before it
parallel  messages without any order
barrier   2 to 10 messages without any order, and one after all of them

Each block is behind all blocks before it. Instead of blocks there may be streams side by side: each
message goes on with one of them, at random, and is behind that stream's last one alone. The thesis
does not tell how many messages a stream or a parallel group has, how many streams there are side by
side, how large messages are, or how long the pauses are: these are parameters.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.workloads.smt import sizes

KINDS = ("stream", "parallel", "barrier")
BARRIER = (2, 10)


@dataclass(frozen=True)
class Wanted:
    """A message; `needs` are numbers of earlier ones, from 0 on."""

    size: int
    needs: tuple[int, ...] = ()
    priority: str = "any"
    tag: int = 1


@dataclass(frozen=True)
class Mixture:
    """`size`: of each message; None: by the distribution. `block`: messages of a stream, or of a
    parallel group. The blocks take the kinds at random, and the priorities in turn. `streams`: that
    many side by side instead of blocks; each has a priority, in turn."""

    kinds: tuple[str, ...] = KINDS
    block: int = 10
    size: int | None = 1024
    distribution: int = 0
    priorities: tuple[str, ...] = ("any",)
    streams: int | None = None

    def messages(self, chance: random.Random) -> Iterator[Wanted]:
        """Without end."""
        return self._blocks(chance) if self.streams is None else self._side_by_side(chance)

    def _side_by_side(self, chance: random.Random) -> Iterator[Wanted]:
        assert self.streams is not None
        last: dict[int, int] = {}
        for number in itertools.count():
            stream = chance.randrange(self.streams)
            needs = (last[stream],) if stream in last else ()
            yield Wanted(self._size(chance), needs, self.priorities[stream % len(self.priorities)])
            last[stream] = number

    def _blocks(self, chance: random.Random) -> Iterator[Wanted]:
        before: tuple[int, ...] = ()
        count = turn = 0
        while True:
            shape = self._shape(chance)
            priority = self.priorities[turn % len(self.priorities)]
            for own in shape:
                needs = tuple(count + it for it in own) if own else before
                yield Wanted(self._size(chance), needs, priority)
            before = tuple(range(count, count + len(shape)))
            count += len(shape)
            turn += 1

    def _shape(self, chance: random.Random) -> list[list[int]]:
        """A block's messages, by what each of them needs in it."""
        kind = chance.choice(self.kinds)
        if kind == "stream":
            return [[it - 1] if it else [] for it in range(self.block)]
        if kind == "parallel":
            return [[] for _ in range(self.block)]
        needed = chance.randint(*BARRIER)
        return [*([] for _ in range(needed)), list(range(needed))]

    def _size(self, chance: random.Random) -> int:
        return self.size if self.size is not None else sizes.draw(chance, self.distribution)


@dataclass(frozen=True)
class Arrivals:
    """On and off, as Harpoon does: a pause after each message of a batch, a rest after it."""

    batch: int = 20
    pause_s: float = 0.0
    rest_s: float = 0.0

    def after(self, count: int) -> float:
        """The time until the next message, when so many were made."""
        return self.pause_s if count % self.batch else self.rest_s


def fixed(messages: Sequence[Wanted]) -> Iterator[Wanted]:
    yield from messages
