# SPDX-License-Identifier: MIT
"""Many values as a curve: how large a share of them is at most so large."""

from collections.abc import Iterable
from typing import Any

QUANTILES = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100)  # percent


class Distribution:
    def __init__(self, values: Iterable[float]) -> None:
        self.values = sorted(values)

    def __len__(self) -> int:
        return len(self.values)

    def quantile(self, percent: float) -> float:
        """The least value that so many percent of all do not exceed. There is one at least."""
        rank = -(-percent * len(self.values) // 100)
        return self.values[max(0, int(rank) - 1)]

    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    def times(self, factor: float) -> "Distribution":
        """In another unit."""
        return Distribution(factor * value for value in self.values)

    def data(self) -> dict[str, Any]:
        """For JSON."""
        if not self.values:
            return {"count": 0}
        return {
            "count": len(self.values),
            "mean": self.mean(),
            "percentiles": {str(it): self.quantile(it) for it in QUANTILES},
        }
