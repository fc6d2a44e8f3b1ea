# SPDX-License-Identifier: MIT
"""The fifteen distributions of message sizes of the thesis's Table 4.1."""

import random

SIZES = (32, 128, 384, 4096, 8192, 16384, 32768, 65536, 131072)
# Of each distribution, 0 to 14: the percentage of messages of each size.
PERCENT = (
    (8, 1, 1, 5, 5, 20, 40, 10, 10),
    (80, 5, 5, 2, 2, 2, 2, 1, 1),
    (100, 0, 0, 0, 0, 0, 0, 0, 0),
    (0, 0, 0, 100, 0, 0, 0, 0, 0),
    (0, 0, 0, 0, 100, 0, 0, 0, 0),
    (0, 0, 0, 0, 0, 100, 0, 0, 0),
    (0, 0, 0, 0, 0, 0, 100, 0, 0),
    (0, 0, 0, 0, 0, 0, 0, 100, 0),
    (50, 0, 0, 0, 0, 0, 50, 0, 0),
    (0, 100, 0, 0, 0, 0, 0, 0, 0),
    (0, 0, 100, 0, 0, 0, 0, 0, 0),
    (0, 0, 0, 0, 0, 0, 0, 0, 100),
    (20, 10, 10, 10, 10, 10, 10, 10, 10),
    (0, 0, 0, 17, 17, 17, 17, 16, 16),
    (40, 30, 30, 0, 0, 0, 0, 0, 0),
)


def mean(distribution: int) -> float:
    """Bytes of a message."""
    pairs = zip(SIZES, PERCENT[distribution], strict=True)
    return sum(size * percent for size, percent in pairs) / 100


def draw(chance: random.Random, distribution: int) -> int:
    return chance.choices(SIZES, PERCENT[distribution])[0]
