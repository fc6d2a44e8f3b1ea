# SPDX-License-Identifier: MIT
"""Files with a JSON object on each line, which somebody may still be writing."""

import json
from typing import Any


def whole_lines(text: str) -> list[str]:
    """Those with their end: of the last one a part may be missing."""
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(text)]
