# SPDX-License-Identifier: MIT
"""What a page is: a tree of objects, each known only after the one that names it was loaded."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

Kind = Literal["html", "style", "script", "font", "image"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SUFFIX: Mapping[Kind, str] = {
    "html": "html",
    "style": "css",
    "script": "js",
    "font": "woff2",
    "image": "png",
}
# Who can name an object of a kind, in a real browser as well.
NAMED_BY: Mapping[Kind, tuple[Kind, ...]] = {
    "html": (),
    "style": ("html",),
    "script": ("html", "script"),
    "font": ("style",),
    "image": ("html", "style", "script"),
}


@dataclass(frozen=True)
class Item:
    """An object of a page."""

    index: int
    host: int  # in the page's hosts
    kind: Kind
    size: int  # bytes of its body
    after: int | None  # index of the object that names it; None: the page itself
    think_ms: float = 0.0  # the main thread's work on it, before what it names is asked for

    @property
    def path(self) -> str:
        if self.after is None:
            return "/index.html"
        return f"/{self.index:03d}.{SUFFIX[self.kind]}"


@dataclass(frozen=True)
class Page:
    """A page: `items[0]` is its HTML, everything else hangs below it."""

    name: str
    title: str
    hosts: tuple[str, ...]
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        for index, item in enumerate(self.items):
            if item.index != index or not 0 <= item.host < len(self.hosts):
                raise ValueError(f"{self.name}: object {index} is {item}")
            if (item.after is None) != (index == 0):
                raise ValueError(f"{self.name}: only the first object has nothing before it")
            if item.after is not None:
                before = self.items[item.after]
                if item.after >= index or before.kind not in NAMED_BY[item.kind]:
                    raise ValueError(f"{self.name}: {item} cannot be named by {before}")

    @property
    def bytes(self) -> int:
        return sum(item.size for item in self.items)

    @property
    def think_ms(self) -> float:
        return sum(item.think_ms for item in self.items)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Of each object: how many must have been loaded one after another before it."""
        found: list[int] = []
        for item in self.items:
            found.append(0 if item.after is None else found[item.after] + 1)
        return tuple(found)

    @cached_property
    def named(self) -> tuple[tuple[Item, ...], ...]:
        """Of each object: those that it names."""
        below: list[list[Item]] = [[] for _ in self.items]
        for item in self.items[1:]:
            assert item.after is not None
            below[item.after].append(item)
        return tuple(tuple(items) for items in below)

    def summary(self) -> dict[str, int | float]:
        return {
            "requests": len(self.items),
            "bytes": self.bytes,
            "hosts": len(self.hosts),
            "depth": max(self.depths),
            "think_ms": round(self.think_ms, 1),
        }


@dataclass(frozen=True)
class Manifest:
    """A page with the digest of each body: what a loader is told, and compares with."""

    page: Page
    sha256: tuple[str, ...]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        told = json.loads(path.read_text())
        page = told["page"]
        items = tuple(Item(**item) for item in page["items"])
        whole = Page(page["name"], page["title"], tuple(page["hosts"]), items)
        return cls(whole, tuple(told["sha256"]))


def chain(page: Page, item: Item) -> Sequence[Item]:
    """What must have been loaded before an object, the page's HTML first."""
    before: list[Item] = []
    while item.after is not None:
        item = page.items[item.after]
        before.insert(0, item)
    return before
