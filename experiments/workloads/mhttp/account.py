# SPDX-License-Identifier: MIT
"""What an object took: for who measures."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Leg:
    """What came from one source."""

    path: str
    server: str
    connections: int = 0
    requests: int = 0
    bytes: int = 0
    lost: list[str] = field(default_factory=list)  # why, each time


@dataclass
class Account:
    """Times are of the loop's clock, in seconds from the first connection's beginning."""

    scheduler: str
    chunk_bytes: int
    look_up_s: float = 0.0
    plain: str | None = None  # why it was one plain GET; None: by ranges
    length: int | None = None
    peak_bytes: int = 0
    first_byte_s: float | None = None
    seconds: float | None = None
    legs: dict[object, Leg] = field(default_factory=dict)
    cpu_before_s: float = field(default_factory=time.process_time)  # taken again at that beginning

    def leg(self, of: object, path: str, server: str) -> Leg:
        return self.legs.setdefault(of, Leg(path, server))

    def told(self) -> dict[str, Any]:
        """For JSON; `cpu_s` is of the whole process, since the same beginning."""
        own = ("legs", "cpu_before_s")
        found = {key: value for key, value in vars(self).items() if key not in own}
        cpu_s = round(time.process_time() - self.cpu_before_s, 4)
        return {**found, "cpu_s": cpu_s, "legs": [asdict(it) for it in self.legs.values()]}
