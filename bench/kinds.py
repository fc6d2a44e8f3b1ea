# SPDX-License-Identifier: MIT
"""What can be measured, and what the load is told to do for it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bulk:
    way: str
    connections: int = 1


@dataclass(frozen=True)
class Ask:
    """Requests of `size` bytes with answers as long, `at_once` connections at a time; `beside` a
    download."""

    size: int
    at_once: int = 1
    beside: bool = False

    @property
    def title(self) -> str:
        size = f"{self.size >> 10} KB" if self.size >= 1 << 10 else f"{self.size} B"
        return f"{size} x{self.at_once}{', beside bulk' if self.beside else ''}"


BULKS = {
    "down": Bulk("down"),
    "up": Bulk("up"),
    "both": Bulk("both", 2),
    **{f"{way}-{n}": Bulk(way, n) for way in ("down", "up", "both") for n in (16, 256, 2_000)},
}
ASKS = {
    f"ask-{name}{'-64' if many > 1 else ''}{'-beside' if beside else ''}": Ask(size, many, beside)
    for name, size in (("100", 100), ("16k", 16 << 10))
    for many in (1, 64)
    for beside in (False, True)
}
STANDARD = ("down", "up", "connects", "echo", "churn", "idle")
WIRE = "wire"  # bytes between a relay's two halves
MORE = (*(it for it in BULKS if it not in STANDARD), *ASKS, WIRE)  # where they are asked for
ALL = (*STANDARD, *MORE)
MEASURES = (*ALL, "udp")  # not all relays carry it
BULK = ("down", "up")
