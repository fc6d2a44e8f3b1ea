# SPDX-License-Identifier: MIT
"""What the format of messages costs: header / (header + payload), and what the extension says."""

from dataclasses import dataclass

from experiments.causes.cause import Cause, Seen, explains
from experiments.causes.units import percent, three

# Measures: the user's bytes in a message; where the extension has ACKs, in one that is none, and
# their share of the pipes' bytes in percent.
ALL, DATA, ACKS = "message_bytes", "data_bytes", "acks"


@dataclass(frozen=True)
class Headers(Cause):
    """In percent."""

    header_bytes: int

    def tell(self, seen: Seen) -> str:
        payload = seen.of.median(DATA) or seen.of.median(ALL)
        acks = seen.of.median(ACKS) or 0.0
        if not payload or not seen.paper:
            return ""
        headers = 100 * self.header_bytes / (self.header_bytes + payload)
        expected = headers + acks
        share = seen.paper / 100
        shorter = self.header_bytes * (1 - share) / share
        more = payload * share / (1 - share)
        extension = f" and {percent(acks / 100)} of ACKs" if acks else ""
        return (
            f"A message has {self.header_bytes} bytes of header and carried {three(payload)} of "
            f"the user here: {percent(headers / 100)}{extension} expected, "
            f"{percent(seen.ours / 100)} measured, {explains(expected, seen.ours)}. The published "
            f"{percent(share)} is that of messages of {three(shorter)} bytes, or of {three(more)} "
            f"bytes of header each."
        )
