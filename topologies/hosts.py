# SPDX-License-Identifier: MIT
"""What client, proxy and server are told of TCP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from topologies.parameter import ParameterError, check_all, declared


def _segments(text: str) -> Any:
    return declared(None, text, kind="whole", low=1, high=65535, unit="segments")


@dataclass(frozen=True)
class HostSettings:
    """What the hosts' TCP is told; None and {} leave the kernel's own."""

    initcwnd: int | None = _segments("initial congestion window")
    initrwnd: int | None = _segments("initial receive window")
    sysctls: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_all(self)
        for key in self.sysctls:
            if not key.startswith("net."):
                raise ParameterError("sysctls", f"{key!r} is not of a network namespace (net....)")

    def route_words(self) -> list[str]:
        words = []
        for name in ("initcwnd", "initrwnd"):
            if getattr(self, name) is not None:
                words += [name, str(getattr(self, name))]
        return words
