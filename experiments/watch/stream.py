# SPDX-License-Identifier: MIT
"""What one who looks is told, as server-sent events: the statistics' own lines, none left out, and
none read here: who looks late is told a long past, beside proxies that have every core busy.

    folder    what is watched; once
    sweep     of a folder of results: its plan; once
    ended     runs that ended since, how many are left and for how long
    plots     the names of all that were drawn, and those that are new or were drawn anew
    run       what follows is of this run: all before it is of another one
    rp, lp    lines of --stats, as they were written; of all others the data is JSON
    said      lines of the proxies' logs
    link      of a lab with a prompt: the last mile's parameters, and what linkem counted
    trouble   why something is not shown, in one line

An event of a proxy has a name (`id`) that says how far both files were read. A browser that lost
the connection says it when it comes again, and is told what follows.
"""

import json
import math
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments.folder import FolderError
from experiments.watch.link import Links
from experiments.watch.sweep import Sweep
from experiments.watch.tail import Tail
from experiments.watch.watched import LOGS, STATS, Watched

LOOK_EVERY_S = 0.1
SEARCH_EVERY_S = 0.5  # for another run
BEAT_EVERY_S = 5.0  # so that either end sees that the other is gone
_OFFSET = re.compile(r"[0-9]{1,15}")  # int() and isdigit() know others, and not the same


def event(name: str, data: str, ident: str | None = None) -> bytes:
    """Of one line or several. A carriage return would end one as well, and JSON needs none."""
    head = f"id: {ident}\n" if ident is not None else ""
    lines = data.replace("\r", " ").replace("\n", "\ndata: ")
    return f"{head}event: {name}\ndata: {lines}\n\n".encode()


class Stream:
    """`run`: that one alone. `since`: the name of the last event that the browser has."""

    def __init__(self, watched: Watched, links: Links | None, run: Path | None, since: str) -> None:
        self._watched, self._links, self._run = watched, links, run
        self._since = since
        self._folder: Path | None = None
        self._tails: dict[str, Tail] = {}
        self._sweep: Sweep | None = None
        self._searched = self._linked = self._begun = self._pictured = -math.inf
        self._drawn: dict[str, int] = {}
        self._told: set[str] = set()  # troubles

    def events(self, ended: Callable[[], bool]) -> Iterator[bytes]:
        """Until `ended`, and then what is new at the end; b"" where there is nothing new."""
        try:
            yield from self._first()
            beat = time.monotonic()
            while not ended():
                some = False
                for each in self._next():
                    some = True
                    yield each
                if time.monotonic() - beat > BEAT_EVERY_S:
                    beat = time.monotonic()
                    yield b": still here\n\n"
                if not some:
                    yield b""
                    time.sleep(LOOK_EVERY_S)
            self._pictured = -math.inf
            yield from self._next()
        finally:
            self._close()

    def _first(self) -> Iterator[bytes]:
        told = {
            "name": self._watched.name,
            "live": self._watched.is_live(),
            "now": time.time(),
            "runs": self._watched.kept(),
            "link": self._links is not None,
        }
        yield event("folder", json.dumps(told))
        if not self._watched.results:
            return
        try:
            self._sweep = Sweep(self._watched.folder)
        except FolderError as why:
            yield event("trouble", json.dumps(str(why)))
            return
        yield event("sweep", json.dumps(self._sweep.told()))

    def _next(self) -> Iterator[bytes]:
        yield from self._ended()
        yield from self._plots()
        yield from self._search()
        yield from self._link()
        for who, tail in self._tails.items():
            yield from self._records(who, tail)

    def _ended(self) -> Iterator[bytes]:
        if self._sweep is None:
            return
        try:
            found = self._sweep.new()
        except FolderError as why:
            self._sweep = None
            yield from self._trouble(str(why))
            return
        if not found:
            return
        told = {
            "runs": found,
            "left": self._sweep.left,
            "left_s": self._sweep.left_s(),
            "kept": self._watched.kept(),
        }
        yield event("ended", json.dumps(told))

    def _plots(self) -> Iterator[bytes]:
        """The pictures themselves: a page has them when the server is gone, too."""
        now = time.monotonic()
        if now - self._pictured < SEARCH_EVERY_S:
            return
        self._pictured = now
        drawn = self._watched.drawn()
        anew: dict[str, str] = {}
        for name, at in [*drawn.items()]:
            if self._drawn.get(name) != at:
                text = (self._watched.plot(name) or b"").decode(errors="replace")
                if text.rstrip().endswith("</svg>"):
                    anew[name] = text
                else:  # it is being written: what was there before stays for a moment
                    drawn.pop(name)
                    drawn |= {name: self._drawn[name]} if name in self._drawn else {}
        if drawn != self._drawn:
            self._drawn = drawn
            yield event("plots", json.dumps({"names": sorted(drawn), "drawn": anew}))

    def _search(self) -> Iterator[bytes]:
        """The run that is watched, if it is another one, or its files are."""
        now = time.monotonic()
        if now - self._searched < SEARCH_EVERY_S:
            return
        self._searched = now
        newest = self._chosen()
        anew = any(tail.replaced() for tail in self._tails.values())
        if newest is None or (newest == self._folder and not anew):
            return
        self._close()
        self._folder = newest
        offsets = self._offsets()
        names = {**STATS, **{f"{who} said": name for who, name in LOGS.items()}}
        self._tails = {who: Tail(newest / name, offsets.get(who, 0)) for who, name in names.items()}
        if not offsets:
            told = {"run": newest.name, "live": self._watched.is_live()}
            yield event("run", json.dumps(told), self._name())

    def _chosen(self) -> Path | None:
        """Of most runs nothing is kept. When a folder goes, its run stays to be looked at until
        another one begins; an earlier one that was kept is not what is wanted then."""
        if self._run:
            return self._run
        found = self._watched.newest()
        if found is None or (found[1] != self._folder and found[0] < self._begun):
            return self._folder
        self._begun = found[0]
        return found[1]

    def _offsets(self) -> dict[str, int]:
        """Where to go on; only once, and only where the browser has the beginning."""
        which = self._which()
        words, self._since = self._since.rsplit(" ", len(STATS) + len(LOGS)), ""
        if len(words) != len(STATS) + len(LOGS) + 1 or words[0] != which:
            return {}
        if not all(map(_OFFSET.fullmatch, words[1:])):
            return {}
        names = (*STATS, *(f"{who} said" for who in LOGS))
        return dict(zip(names, map(int, words[1:]), strict=True))

    def _which(self) -> str:
        """Folder and run; in ASCII, and one line whatever they are called."""
        assert self._folder is not None
        return json.dumps([self._watched.name, self._folder.name])

    def _name(self) -> str:
        return " ".join([self._which(), *(str(it.offset) for it in self._tails.values())])

    def _records(self, who: str, tail: Tail) -> Iterator[bytes]:
        try:
            lines = tail.new()
        except PermissionError:
            yield from self._trouble(f"{tail.path}: only its owner may read it: sudo tm3lab watch")
            return
        if not lines:
            return
        if who in LOGS:
            yield event(who, "\n".join(lines), self._name())
        else:
            told = {"who": who.split()[0], "at": time.time(), "lines": lines}
            yield event("said", json.dumps(told), self._name())

    def _trouble(self, text: str) -> Iterator[bytes]:
        if text not in self._told:
            self._told.add(text)
            yield event("trouble", json.dumps(text))

    def _link(self) -> Iterator[bytes]:
        now = time.monotonic()
        if self._links is None or now - self._linked < self._links.EVERY_S:
            return
        self._linked = now
        yield event("link", json.dumps(self._links.told()))

    def _close(self) -> None:
        for tail in self._tails.values():
            tail.close()
