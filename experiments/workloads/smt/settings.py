# SPDX-License-Identifier: MIT
"""How an association sends and receives. The client tells its server, so that both are alike."""

import json
from dataclasses import asdict, dataclass, fields

from experiments.workloads.smt.control import Hello, told
from experiments.workloads.smt.failure import BadMessage
from experiments.workloads.smt.policies import POLICIES, Policy
from experiments.workloads.smt.sender import Limits


@dataclass(frozen=True)
class Settings:
    """`cc`: TCP's congestion control; empty: the system's."""

    policy: str = "closure"
    printed: bool = False
    most_messages: int = 1024
    most_bytes: int = 4 << 20
    bulk_bytes: int = 32 << 10
    buffer: int = 1024
    silence_s: float = 5.0
    cc: str = ""

    @property
    def limits(self) -> Limits:
        return Limits(self.most_messages, self.most_bytes)

    @property
    def rule(self) -> Policy:
        return POLICIES[self.policy]

    def hello(self, association: bytes) -> Hello:
        return Hello(association, json.dumps(asdict(self)))

    @classmethod
    def of(cls, hello: Hello) -> "Settings":
        """Raises BadMessage."""
        found = told(hello)
        kinds = {it.name: type(it.default) for it in fields(cls)}
        wrong = [
            name
            for name in found.keys() | kinds.keys()
            if name not in found or type(found[name]) is not kinds.get(name)
        ]
        if wrong or found["policy"] not in POLICIES:
            raise BadMessage(f"settings: {', '.join(sorted(wrong)) or found['policy']}")
        return cls(**found)
