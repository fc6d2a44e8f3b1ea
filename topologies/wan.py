# SPDX-License-Identifier: MIT
"""The way from the remote proxy to the server."""

from dataclasses import dataclass

from topologies.mile import Mile
from topologies.parameter import check_all, declared

QUEUE_MS = 50.0


@dataclass(frozen=True)
class Wan:
    wan_mbps: float = declared(
        1000.0, "proxy to server", low=0.01, high=1e4, noun="rate behind the proxy"
    )
    wan_rtt_ms: float = declared(
        4.0,
        "proxy to server, there and back",
        low=0,
        high=2e4,
        noun="round trip behind the proxy",
    )

    def __post_init__(self) -> None:
        check_all(self)

    def mile(self) -> Mile:
        return Mile(
            down_mbps=self.wan_mbps,
            up_mbps=self.wan_mbps,
            rtt_ms=self.wan_rtt_ms,
            queue_down_ms=QUEUE_MS,
            queue_up_ms=QUEUE_MS,
        )
