# SPDX-License-Identifier: MIT
"""Messages that a file describes, in JSON:

[{"name": "A", "size": 100},
 {"name": "B", "size": 2000, "needs": ["A"], "priority": "any", "tag": 1}]
"""

import json
from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from experiments.workloads.smt.failure import BadInput
from experiments.workloads.smt.generator import Wanted
from experiments.workloads.smt.header import TAGS
from experiments.workloads.smt.line import LARGEST

SMALLEST = 8  # bytes: a message carries its number
_KINDS: dict[str, type] = {"name": str, "size": int, "needs": list, "priority": str, "tag": int}


def read(path: str, priorities: Collection[str]) -> list[Wanted]:
    """Raises BadInput."""
    try:
        told = json.loads(Path(path).read_text())
    except OSError as error:
        raise BadInput(f"graph {path}: {error.strerror}") from None
    except ValueError as error:
        raise BadInput(f"graph {path}: no JSON: {error}") from None
    try:
        return messages(told, priorities)
    except BadInput as wrong:
        raise BadInput(f"graph {path}: {wrong}") from None


def messages(told: Any, priorities: Collection[str]) -> list[Wanted]:
    """Raises BadInput."""
    if not isinstance(told, list) or not told:
        raise BadInput("it is no list of messages")
    for it in told:
        _check(it, priorities)
    names = [it["name"] for it in told]
    if len(set(names)) < len(names):
        raise BadInput(f"{next(it for it in names if names.count(it) > 1)} is there twice")
    _check_order({it["name"]: it.get("needs", []) for it in told})
    return [
        Wanted(
            it["size"],
            tuple(names.index(need) for need in it.get("needs", [])),
            it.get("priority", next(iter(priorities))),
            it.get("tag", 1),
        )
        for it in told
    ]


def _check(it: Any, priorities: Collection[str]) -> None:
    if not isinstance(it, dict) or not {"name", "size"} <= it.keys() <= _KINDS.keys():
        raise BadInput(f"{json.dumps(it)[:60]} has not name, size and perhaps needs, priority, tag")
    if not isinstance(it["name"], str) or not it["name"].isprintable():
        raise BadInput(f"{json.dumps(it['name'])[:60]} is no name that could be shown")
    for key, value in it.items():
        if type(value) is not _KINDS[key]:
            raise BadInput(f"{it['name']}: {key} {json.dumps(value)[:40]} is wrong")
    if not SMALLEST <= it["size"] <= LARGEST // 2:
        raise BadInput(f"{it['name']}: size {it['size']} is not from {SMALLEST} to {LARGEST // 2}")
    if not 0 < it.get("tag", 1) < TAGS:
        raise BadInput(f"{it['name']}: tag {it['tag']} is not from 1 to {TAGS - 1}")
    if it.get("priority") not in (None, *priorities):
        known = ", ".join(priorities)
        raise BadInput(f"{it['name']}: unknown priority {it['priority']!r}: it is none of {known}")


def _check_order(needs: dict[str, list[Any]]) -> None:
    for name, wanted in needs.items():
        for it in wanted:
            if not isinstance(it, str) or it not in needs:
                raise BadInput(f"{name} depends on {json.dumps(it)[:60]}, which is not there")
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as found:
        raise BadInput(f"cyclic graph: {' -> '.join(reversed(found.args[1]))}") from None
    places = {name: at for at, name in enumerate(needs)}
    for name, wanted in needs.items():
        for it in wanted:
            if places[it] > places[name]:
                raise BadInput(f"forward dependency: {name} depends on {it}, which comes later")
