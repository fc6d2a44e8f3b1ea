# SPDX-License-Identifier: MIT
"""The binomial distribution, exactly: how many of n are lost if each is with p."""

import math


def interval(n: int, p: float, inside: float = 0.999) -> tuple[int, int]:
    """The smallest and largest count that is not in one of the two tails."""
    if p <= 0 or n == 0:
        return 0, 0
    tail = (1 - inside) / 2
    below, low, high = 0.0, None, n
    for k in range(n + 1):
        below += math.exp(
            math.lgamma(n + 1)
            - math.lgamma(k + 1)
            - math.lgamma(n - k + 1)
            + k * math.log(p)
            + (n - k) * math.log1p(-p)
        )
        if low is None and below > tail:
            low = k
        if below >= 1 - tail:
            high = k
            break
    return low or 0, high
