# SPDX-License-Identifier: MIT
"""What a proxy wrote with --stats: JSON lines, read back."""

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def soon(path: Path) -> list[str]:
    """Options for a test that waits for a record: with others it may be written a second later."""
    return ["--stats", str(path), "--stats-interval", "0.05"]


def read(path: Path) -> list[Record]:
    """All whole lines so far; every one must be JSON."""
    if not path.exists():
        return []
    whole = path.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def of(path: Path, kind: str) -> list[Record]:
    return [record for record in read(path) if record["type"] == kind]


def last_of_pipes(path: Path, session: int = 1) -> list[Record]:
    """The newest sample of each pipe of a session, by pipe number."""
    newest = {r["pipe"]: r for r in of(path, "pipe") if r["session"] == session}
    return [newest[number] for number in sorted(newest)]
